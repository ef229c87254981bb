"""Finding a place of one examination in another: permissions, hits, and reasons without hits."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from PIL import Image
from rest_framework.test import APIClient

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas, Case, Video
from portal.archive.storage import files as archive_storage
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.tasks import LeaseLost
from portal.jobs.models import Job
from portal.labs.models import Lab, User
from portal.mosaics.models import Followup, Mosaic
from portal.mosaics.selectors.followups import followup_targets
from portal.mosaics.services.followups import followup_create
from tests.portal.mosaics.conftest import (
    STEP_PX,
    make_mosaic,
    make_video,
    run_job,
    texture,
    write_video,
)

FOLLOWUPS = "/api/v1/followups/"
SIZE, PATIENT = 320, "p-7"


def square(left: float, top: float, side: float = 60) -> dict[str, Any]:
    right, low = left + side, top + side
    ring = [[left, top], [right, top], [right, low], [left, low], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


def make_place(video: Video, **more: Any) -> Roi:
    """A row of an ROI on the first frame, without any file."""
    assert video.canvas is not None
    bounds = {"left": 5, "top": 5, "right": 40, "bottom": 40, "area_px": 1225}
    fields = {"frame_index": 0, "frame_pts": 0, "geometry": square(5, 5, 35)} | bounds
    return Roi.objects.create(lab_id=video.lab_id, canvas=video.canvas, **(fields | more))


@pytest.fixture
def patient(ready_video: Video) -> Video:
    """A ready video of a patient with a pseudonym."""
    Case.objects.filter(pk=ready_video.case_id).update(patient_key=PATIENT)
    ready_video.case.refresh_from_db()
    return ready_video


@pytest.fixture
def later(lab: Lab, annotator: User, patient: Video) -> Video:
    """Another examination of the patient."""
    video = make_video(lab, annotator, accession="V-2", name="Later")
    Case.objects.filter(pk=video.case_id).update(patient_key=PATIENT)
    return video


def test_targets_are_videos_and_mosaics_of_the_patient(
    lab: Lab, other_lab: Lab, annotator: User, stranger: User, patient: Video, later: Video
) -> None:
    mosaic = make_mosaic(later)
    other_patient = make_video(lab, annotator, accession="V-3")
    Case.objects.filter(pk=other_patient.case_id).update(patient_key="p-8")
    foreign = make_video(other_lab, stranger)
    Case.objects.filter(pk=foreign.case_id).update(patient_key=PATIENT)
    names = set(followup_targets(make_place(patient)).values_list("pk", flat=True))
    assert names == {later.canvas_id, mosaic.canvas_id}


def test_without_a_pseudonym_only_the_case_counts(
    lab: Lab, annotator: User, ready_video: Video
) -> None:
    make_video(lab, annotator, accession="V-2")
    same_patient = make_video(lab, annotator, accession="V-1", name="Beside")
    rows = followup_targets(make_place(ready_video)).values_list("pk", flat=True)
    assert list(rows) == [same_patient.canvas_id]


def test_another_patient_a_deleted_place_and_a_slide_are_refused(
    lab: Lab, annotator: User, patient: Video, later: Video
) -> None:
    assert later.canvas is not None
    stranger = make_video(lab, annotator, accession="V-3")
    assert stranger.canvas is not None
    place = make_place(patient)
    with pytest.raises(InvalidInputError, match="same patient"):
        followup_create(roi=place, target=stranger.canvas, user=annotator)
    with pytest.raises(InvalidInputError, match="same patient"):
        followup_create(roi=place, target=place.canvas, user=annotator)
    place.deleted_at = place.created_at
    with pytest.raises(ConflictError, match="deleted"):
        followup_create(roi=place, target=later.canvas, user=annotator)
    place.deleted_at = None
    place.canvas.kind = "slide"
    with pytest.raises(InvalidInputError, match="endoscopy"):
        followup_create(roi=place, target=later.canvas, user=annotator)


def test_the_same_outline_and_target_are_one_followup(
    annotator: User, patient: Video, later: Video
) -> None:
    assert later.canvas is not None
    place = make_place(patient)
    first = followup_create(roi=place, target=later.canvas, user=annotator)
    again = followup_create(roi=place, target=later.canvas, user=annotator)
    assert (first.is_new, again.is_new) == (True, False)
    assert again.job == first.job
    place.version = 2
    assert followup_create(roi=place, target=later.canvas, user=annotator).is_new
    Followup.objects.filter(pk=first.followup.pk).update(state="failed")
    place.version = 1
    assert followup_create(roi=place, target=later.canvas, user=annotator).is_new


def test_rest_requests_and_lists_followups(
    api: APIClient, api_as: Any, viewer: User, patient: Video, later: Video
) -> None:
    body = {"roi": str(make_place(patient).pk), "target": str(later.canvas_id)}
    assert api_as(viewer).post(FOLLOWUPS, body).status_code == 403
    answer = api.post(FOLLOWUPS, body)
    assert (answer.status_code, answer.json()["state"]) == (202, "preparing")
    url = f"{FOLLOWUPS}{answer.json()['id']}/"
    assert api.get(f"{url}matches/1.jpg").status_code == 404
    for bad in ({}, {"roi": "x"}, body | {"target": None}):
        assert api.post(FOLLOWUPS, bad).status_code == 400
    assert len(api.get(FOLLOWUPS, {"roi": body["roi"]}).json()["results"]) == 1


def test_queries_do_not_grow_with_followups(
    api: APIClient, annotator: User, patient: Video, later: Video
) -> None:
    assert later.canvas is not None

    def query_count() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert api.get(FOLLOWUPS).status_code == 200
        return len(queries)

    followup_create(roi=make_place(patient), target=later.canvas, user=annotator)
    before = query_count()
    for _ in range(5):
        followup_create(roi=make_place(patient), target=later.canvas, user=annotator)
    assert query_count() == before <= 4  # one of them is the audit log's


def test_pages_offer_targets_and_show_results(
    page: Client, annotator: User, patient: Video, later: Video
) -> None:
    assert later.canvas is not None
    place = make_place(patient, name="Polyp")
    new = reverse("mosaics:followup_new", args=[place.pk])
    text = page.get(new).content.decode()
    assert "Later" in text
    assert "Search here" in text
    answer = page.post(new, {"target": str(later.canvas_id)})
    followup = Followup.objects.get()
    detail = reverse("mosaics:followup_detail", args=[followup.pk])
    assert answer["Location"] == detail
    assert "Searching" in page.get(detail).content.decode()
    Followup.objects.update(state="ready", searched_count=48)
    text = page.get(detail).content.decode()
    assert "Not found." in text
    assert "None of the 48 frames" in text
    hit = {"rank": 1, "index": 3, "pts": 120, "time_s": 0.12, "inliers": 30, "matches": 40}
    outline = square(1, 1)["coordinates"][0]
    Followup.objects.update(result=[hit | {"outline": outline, "picture": "hit-1.jpg"}])
    text = page.get(detail).content.decode()
    assert "30 of 40 matches agree" in text
    assert f"/canvases/{later.canvas_id}/?t=120" in text
    assert "Found" in page.get(new).content.decode()
    assert page.post(new, {"target": "x"}).status_code == 400


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two sweeps over one wall, the second turned a quarter; one over another wall."""
    folder = tmp_path_factory.mktemp("visits")
    wall, other = texture(SIZE + 8 * STEP_PX, SIZE, 1), texture(SIZE + 8 * STEP_PX, SIZE, 2)

    def sweep(scene: Any, is_rotated: bool) -> list[Any]:
        views = [scene[:, STEP_PX * i : STEP_PX * i + SIZE] for i in range(8)]
        return [np.ascontiguousarray(np.rot90(v) if is_rotated else v) for v in views]

    return {
        "first": write_video(folder / "first.mp4", sweep(wall, False)),
        "second": write_video(folder / "second.mp4", sweep(wall, True)),
        "other": write_video(folder / "other.mp4", sweep(other, False)),
    }


@pytest.fixture
def visit(
    ingest: Callable[..., Video], lab: Lab, annotator: User, visits: dict[str, Path]
) -> Callable[[str], Video]:
    """``visit("second")``: that sweep, ready, of the patient."""

    def run(name: str) -> Video:
        video = ingest(lab, annotator, visits[name])
        Case.objects.filter(pk=video.case_id).update(patient_key=PATIENT)
        return Video.objects.select_related("canvas", "case").get(pk=video.pk)

    return run


def place_on(video: Video, user: User) -> Roi:
    """A square on the first frame, through the services."""
    return roi_create(
        canvas=video.canvas, user=user, geometry=square(150, 130), frame_index=0, frame_pts=None
    ).roi


@pytest.mark.slow
def test_a_place_is_found_again_in_the_frames_that_show_it(
    visit: Callable[[str], Video], annotator: User, api: APIClient
) -> None:
    roi, second = place_on(visit("first"), annotator), visit("second")
    assert second.canvas is not None
    requested = followup_create(roi=roi, target=second.canvas, user=annotator)
    job = run_job(requested.job)
    assert job.state == "succeeded", job.error_message + job.traceback
    body = api.get(f"{FOLLOWUPS}{requested.followup.pk}/").json()
    assert body["searched_count"] == 8
    best = body["results"][0]
    assert (best["rank"], best["index"]) == (1, best["pts"] // second_pts(second))
    # a quarter turn counter-clockwise: (x, y) of frame i becomes (y, SIZE - 1 - x)
    x = 180 - STEP_PX * best["index"]
    middle = np.mean(best["outline"][:4], axis=0)
    assert middle == pytest.approx((160, SIZE - 1 - x), abs=3)
    picture = api.get(best["picture_url"])
    assert Image.open(io.BytesIO(picture.content)).format == "JPEG"
    before = Followup.objects.values_list("result", flat=True).get()
    Followup.objects.update(state="preparing")
    Job.objects.filter(pk=job.pk).update(state="queued", not_before=None)
    assert run_job(job).state == "succeeded"  # a worker died before its last commit
    assert Followup.objects.values_list("result", flat=True).get() == before


def second_pts(video: Video) -> int:
    from portal.archive.selectors.frames import frame_table

    return int(frame_table(video).pts[1])


@pytest.mark.slow
def test_another_wall_is_reported_as_not_found(
    visit: Callable[[str], Video], annotator: User
) -> None:
    roi, other = place_on(visit("first"), annotator), visit("other")
    assert other.canvas is not None
    requested = followup_create(roi=roi, target=other.canvas, user=annotator)
    assert run_job(requested.job).state == "succeeded"
    requested.followup.refresh_from_db()
    assert (requested.followup.state, requested.followup.result) == ("ready", [])
    assert requested.followup.searched_count == 8


@pytest.mark.slow
def test_a_place_is_found_on_a_mosaic(visit: Callable[[str], Video], annotator: User) -> None:
    from portal.mosaics.services.mosaics import mosaic_create

    roi, second = place_on(visit("first"), annotator), visit("second")
    assert run_job(mosaic_create(video=second, user=annotator).job).state == "succeeded"
    canvas = Mosaic.objects.select_related("canvas").get().canvas
    assert canvas is not None
    requested = followup_create(roi=roi, target=canvas, user=annotator)
    job = run_job(requested.job)
    assert job.state == "succeeded", job.error_message + job.traceback
    requested.followup.refresh_from_db()
    (hit,) = requested.followup.result
    assert hit["pts"] is None
    middle = np.mean(hit["outline"][:4], axis=0)
    assert (middle > 0).all()
    assert (middle < (canvas.width_px, canvas.height_px)).all()


@pytest.mark.slow
def test_a_place_of_a_still_is_found_and_found_from(
    visit: Callable[[str], Video], annotator: User, visits: dict[str, Path]
) -> None:
    second = visit("second")
    frame = texture(SIZE + 8 * STEP_PX, SIZE, 1)[:, :SIZE]
    path = archive_storage.resolve("still.png")
    Image.fromarray(np.ascontiguousarray(frame)).save(path)
    still = Canvas.objects.create(
        lab=second.lab,
        case=second.case,
        kind="still",
        modality="endoscopy",
        name="Still",
        width_px=SIZE,
        height_px=SIZE,
        pixels_path=path.name,
        content_hash="s",
    )
    of_still = roi_create(canvas=still, user=annotator, geometry=square(150, 130)).roi
    assert second.canvas is not None
    of_video = place_on(visit("first"), annotator)
    for roi, target in ((of_still, second.canvas), (of_video, still)):
        requested = followup_create(roi=roi, target=target, user=annotator)
        job = run_job(requested.job)
        assert job.state == "succeeded", job.error_message + job.traceback
        requested.followup.refresh_from_db()
        assert requested.followup.result
    middle = np.mean(requested.followup.result[0]["outline"][:4], axis=0)
    assert middle == pytest.approx((180, 160), abs=3)
    still.modality = "histology"
    still.save()
    with pytest.raises(InvalidInputError, match="same patient"):
        followup_create(roi=of_video, target=still, user=annotator)


@pytest.mark.slow
def test_a_search_that_loses_its_lease_writes_nothing(
    visit: Callable[[str], Video], annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    roi, other = place_on(visit("first"), annotator), visit("other")
    assert other.canvas is not None
    requested = followup_create(roi=roi, target=other.canvas, user=annotator)

    def lose(self: Any) -> Any:
        raise LeaseLost("taken over")

    monkeypatch.setattr("portal.jobs.worker.context.LeasedJobContext.effect", lose)
    assert run_job(requested.job).state == "running"
    requested.followup.refresh_from_db()
    assert requested.followup.state == "preparing"
    assert not archive_storage.derived_folder(requested.followup.pk).exists()


def test_a_missing_file_fails_clearly_and_can_be_tried_again(
    visit: Callable[[str], Video], annotator: User
) -> None:
    roi, other = place_on(visit("first"), annotator), visit("other")
    assert other.canvas is not None
    archive_storage.resolve(other.canvas.pixels_path).unlink()
    requested = followup_create(roi=roi, target=other.canvas, user=annotator)
    job = run_job(requested.job)
    requested.followup.refresh_from_db()
    assert (job.state, requested.followup.state) == ("failed", "failed")
    assert requested.followup.error_message
    assert followup_create(roi=roi, target=other.canvas, user=annotator).is_new
