"""Pages of mosaics, and what they add to cases and viewers."""

from __future__ import annotations

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from portal.archive.models import Asset, Canvas, Video
from portal.jobs.models import Job
from portal.labs.models import Lab, User
from portal.mosaics.build_cache import build_cache_preview
from portal.mosaics.models import Mosaic, MosaicComponent
from portal.mosaics.services.mosaics import mosaic_create
from portal.mosaics.views.mosaics import STEPS


def detail(mosaic: Mosaic) -> str:
    return reverse("mosaics:mosaic_detail", args=[mosaic.pk])


def test_a_built_mosaic_shows_size_counts_reasons_and_the_strip(
    page: Client, built: Mosaic
) -> None:
    text = page.get(detail(built)).content.decode()
    assert "170 × 80 px" in text
    assert "6 of 8 registered" in text
    assert '<option value="170" selected>170 px</option>' in text  # never enlarged
    assert "Frame 4, 0.12 s: skipped, blurred" in text
    assert text.count("<rect") == 5
    assert "Too few points agree" in text
    assert reverse("archive:viewer", args=[built.canvas_id]) in text


def test_list_shows_mosaics_of_all_cases_with_filters(page: Client, built: Mosaic) -> None:
    listed = reverse("mosaics:mosaic_list")
    accession = built.case.accession
    for query, count in (
        ({}, 1),
        ({"q": accession}, 1),
        ({"q": f"{accession} {built.name}"}, 1),
        ({"q": "elsewhere"}, 0),
        ({"state": "failed"}, 0),
        ({"state": "ready"}, 1),
        ({"state": "unknown"}, 1),
        ({"page": "9"}, 1),
    ):
        text = page.get(listed, query).content.decode()
        assert (text.count(detail(built)) > 0) == count, query
        assert ("Nothing matches" in text) == (not count), query


def test_list_without_mosaics_leads_to_videos(page: Client) -> None:
    text = page.get(reverse("mosaics:mosaic_list")).content.decode()
    assert "No mosaics yet" in text
    assert reverse("archive:case_list") + "?kind=video" in text


def test_list_shows_progress_during_a_build(
    page: Client, ready_video: Video, annotator: User
) -> None:
    mosaic_create(video=ready_video, user=annotator)
    text = page.get(reverse("mosaics:mosaic_list")).content.decode()
    assert "Being built" in text
    assert 'role="progressbar"' in text or "<progress" in text


def test_building_redirects_to_a_polling_page(page: Client, ready_video: Video) -> None:
    answer = page.post(reverse("mosaics:mosaic_create", args=[ready_video.pk]))
    mosaic = Mosaic.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, detail(mosaic))
    text = page.get(detail(mosaic)).content.decode()
    assert "Being built" in text
    assert 'hx-trigger="job-ended' in text
    component = page.get(detail(mosaic), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in component
    assert 'id="mosaic"' in component


def test_a_failed_build_shows_its_reason_and_can_be_retried(page: Client, built: Mosaic) -> None:
    Mosaic.objects.update(state="failed", error_code="mosaic-failed", error_message="No two.")
    text = page.get(detail(built)).content.decode()
    assert "No two." in text
    assert "Try again" in text
    assert "Frame 4, 0.12 s: skipped, blurred" in text
    assert "Open in viewer" not in text


def test_other_configurations_come_through_the_form(page: Client, ready_video: Video) -> None:
    path = reverse("mosaics:mosaic_create", args=[ready_video.pk])
    page.post(path, {"step": "3", "motion_model": "affine"})
    assert Mosaic.objects.get().config == {"step": 3, "motion_model": "affine"}
    assert page.post(path, {"step": "many"}).status_code == 400


def test_the_mosaics_of_a_video_are_next_to_a_form_with_an_estimate(
    page: Client, video: Video, annotator: User
) -> None:
    path = reverse("mosaics:video_mosaics", args=[video.pk])
    text = page.get(path).content.decode()
    assert "no mosaic yet" in text
    assert "of 10 frames" in text
    mosaic_create(video=video, user=annotator, config={"start_s": 0.1, "end_s": 0.3})
    text = page.get(path).content.decode()
    assert "0.1 s to 0.3 s" in text
    component = page.get(path, {"start_s": "0.2"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in component
    assert "of 5 frames" in component
    wrong = page.get(path, {"start_s": "9"}, headers={"HX-Request": "true"}).content.decode()
    assert "the span holds 0 of the video" in wrong


def test_a_mosaic_of_a_span_leads_to_a_longer_one(
    page: Client, built: Mosaic, video: Video
) -> None:
    listed = reverse("mosaics:video_mosaics", args=[built.video_id])
    assert "More seconds" not in page.get(detail(built)).content.decode()
    config = {"start_s": 0.1, "end_s": 0.3, "step": 7, "motion_model": "affine"}
    Mosaic.objects.filter(pk=built.pk).update(config=config)
    text = page.get(detail(built)).content.decode()
    assert f'href="{listed}?motion_model=affine&amp;start_s=0.1&amp;step=7"' in text
    query = {"start_s": "0.1", "step": "7", "motion_model": "affine"}
    text = page.get(reverse("mosaics:video_mosaics", args=[video.pk]), query).content.decode()
    for chosen in (
        'placeholder="start" value="0.1"',
        '<option value="7" selected>7th frame</option>',
        '<option value="affine" selected>',
    ):
        assert chosen in text
    text = page.get(reverse("mosaics:video_mosaics", args=[video.pk]), {"step": "0"})
    assert text.context["steps"] == list(STEPS)  # no build takes every 0th frame


def test_a_stopped_build_shows_that_it_resumes(
    page: Client, ready_video: Video, annotator: User
) -> None:
    mosaic = mosaic_create(
        video=ready_video, user=annotator, config={"motion_model": "affine"}
    ).mosaic
    Mosaic.objects.update(state="failed", error_code="cancelled", error_message="Cancelled.")
    assert "Try again" in page.get(detail(mosaic)).content.decode()
    build_cache_preview(mosaic).parent.mkdir(parents=True)
    build_cache_preview(mosaic).write_bytes(b"x")
    text = page.get(detail(mosaic)).content.decode()
    assert "Go on" in text
    assert f"/api/v1/mosaics/{mosaic.pk}/preview.jpg" in text
    assert '<input type="hidden" name="motion_model" value="affine">' in text


def test_stages_are_shown_as_done_now_and_next(
    page: Client, ready_video: Video, annotator: User
) -> None:
    requested = mosaic_create(video=ready_video, user=annotator)
    Job.objects.update(state="running", phase="register")
    text = page.get(detail(requested.mosaic)).content.decode()
    assert '<li data-state="done">Survey frames</li>' in text
    assert '<li data-state="now" aria-current="step">Register</li>' in text


def test_the_case_shows_mosaics_and_the_button(
    page: Client, ready_video: Video, annotator: User
) -> None:
    case = reverse("archive:case_detail", args=[ready_video.case_id])
    text = page.get(case).content.decode()
    assert "Build mosaic" in text
    assert "mosaics-heading" not in text
    mosaic = mosaic_create(video=ready_video, user=annotator).mosaic
    text = page.get(case).content.decode()
    assert reverse("mosaics:mosaic_create", args=[ready_video.pk]) not in text
    assert detail(mosaic) in text
    assert "Waiting for a worker" in text
    component = page.get(
        reverse("mosaics:case_mosaics", args=[ready_video.case_id])
    ).content.decode()
    assert detail(mosaic) in component
    assert "<html" not in component


def test_the_viewer_of_a_mosaic_leads_to_its_frames(page: Client, built: Mosaic) -> None:
    text = page.get(reverse("archive:viewer", args=[built.canvas_id])).content.decode()
    assert detail(built) in text
    assert "Component 1" not in text
    first = built.components.get()
    copy = Canvas.objects.get(pk=built.canvas_id)
    copy.pk = None
    copy._state.adding = True
    copy.save()
    MosaicComponent.objects.create(mosaic=built, index=1, canvas=copy)
    text = page.get(reverse("archive:viewer", args=[copy.pk])).content.decode()
    assert "Component 2" in text
    assert reverse("archive:viewer", args=[first.canvas_id]) in text


def test_viewers_see_and_do_not_build(client: Client, viewer: User, ready_video: Video) -> None:
    client.force_login(viewer)
    case = reverse("archive:case_detail", args=[ready_video.case_id])
    assert "Build mosaic" not in client.get(case).content.decode()
    path = reverse("mosaics:mosaic_create", args=[ready_video.pk])
    assert client.post(path).status_code == 403


def test_pages_need_equal_queries_for_many_parts_and_mosaics(
    page: Client, built: Mosaic, annotator: User
) -> None:
    listed = reverse("mosaics:video_mosaics", args=[built.video_id])
    Video.objects.update(state="preparing")  # its estimate reads a file that is not here

    def query_counts() -> list[int]:
        counts = []
        for path in (detail(built), listed, reverse("mosaics:mosaic_list")):
            with CaptureQueriesContext(connection) as queries:
                assert page.get(path).status_code == 200
            counts.append(len(queries))
        return counts

    query_counts()  # the first opening of a page is noted in the audit log
    before = query_counts()
    first = Canvas.objects.get(pk=built.canvas_id)

    def copy() -> Canvas:
        first.pk, first._state.adding = None, True
        first.save()
        return Canvas.objects.get(pk=first.pk)

    for index in range(1, 4):
        MosaicComponent.objects.create(mosaic=built, index=index, canvas=copy())
        Mosaic.objects.create(
            lab_id=built.lab_id,
            case_id=built.case_id,
            video_id=built.video_id,
            canvas=copy(),
            state="ready",
            config_hash=str(index),
        )
    assert query_counts() == before


def test_the_case_needs_equal_queries_for_many_videos(
    page: Client, lab: Lab, ready_video: Video, annotator: User
) -> None:
    """The number of queries, of mosaics and of the archive, does not grow."""

    def add(number: int) -> None:
        for index in range(number):
            fields = {"lab": lab, "case": ready_video.case, "name": f"{number}-{index}"}
            canvas = Canvas.objects.create(
                **fields,
                kind="video",
                modality="endoscopy",
                width_px=9,
                height_px=9,
                pixels_path="-",
                content_hash="v",
            )
            asset = Asset.objects.create(
                lab=lab, sha256=f"{number}-{index}", size_bytes=1, media_type="v"
            )
            video = Video.objects.create(**fields, asset=asset, canvas=canvas, state="ready")
            if index % 2:
                mosaic_create(video=video, user=annotator)

    def query_counts() -> int:
        with CaptureQueriesContext(connection) as queries:
            page.get(reverse("archive:case_detail", args=[ready_video.case_id]))
        return len(queries)

    add(2)
    before = query_counts()
    add(10)
    assert query_counts() == before
