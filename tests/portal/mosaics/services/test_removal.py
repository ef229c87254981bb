"""A mosaic is deleted: its work stopped, its rows and files gone, the work of people kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas, Video
from portal.archive.services.trash import trash_purge, trash_restore
from portal.archive.storage import files as archive_storage
from portal.core.errors import ForbiddenError
from portal.core.models import Event
from portal.jobs.models import Job
from portal.labs.models import Lab, User
from portal.mosaics.build_cache import build_cache_folder, build_cache_stages
from portal.mosaics.models import Followup, Mosaic, MosaicComponent, MosaicFrame
from portal.mosaics.options import options_hash
from portal.mosaics.services.followups import followup_create
from portal.mosaics.services.mosaics import mosaic_create
from portal.mosaics.services.removal import mosaic_delete
from tests.portal.mosaics.conftest import make_mosaic, make_video, run_job

SQUARE = {"type": "Polygon", "coordinates": [[[5, 5], [50, 5], [50, 50], [5, 50], [5, 5]]]}
OnCommit = Callable[..., Any]


def files_of(mosaic: Mosaic) -> list[Path]:
    """A file in each folder that belongs to it."""
    paths = [
        archive_storage.derived_folder(mosaic.pk) / "mosaic.tif",
        build_cache_stages(mosaic) / "survey.npz",
        *(
            archive_storage.cache_folder(component.canvas_id) / "t.jpg"
            for component in mosaic.components.all()
        ),
    ]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return paths


def test_rows_and_files_go_and_the_video_stays(
    built: Mosaic, annotator: User, django_capture_on_commit_callbacks: OnCommit
) -> None:
    files, video = files_of(built), built.video
    with django_capture_on_commit_callbacks(execute=True):
        entry = mosaic_delete(mosaic=built, user=annotator)
        assert not Mosaic.objects.exists()
        trash_purge(entry=entry, user=None)
        assert all(path.exists() for path in files), "not before the rows are gone for good"
    assert [path for path in files if path.parent.exists()] == []
    assert not Mosaic.all_objects.exists()
    for model in (MosaicComponent, MosaicFrame):
        assert not model.objects.exists()
    assert not Canvas.all_objects.filter(kind="mosaic").exists()
    video.refresh_from_db()
    assert video.canvas is not None
    event = Event.objects.get(name="mosaic.deleted")
    assert event.payload["name"] == "Sweep mosaic"
    assert event.payload["deleted_by"] == str(annotator.pk)
    assert event.lab_id == video.lab_id


def test_a_deleted_mosaic_can_be_requested_again(built: Mosaic, annotator: User) -> None:
    video = built.video
    mosaic_delete(mosaic=built, user=annotator)
    assert mosaic_create(video=video, user=annotator).is_new


def test_regions_are_not_lost_silently(built: Mosaic, annotator: User) -> None:
    assert built.canvas is not None
    rois = [roi_create(canvas=built.canvas, user=annotator, geometry=SQUARE).roi for _ in range(2)]
    entry = mosaic_delete(mosaic=built, user=annotator)
    assert not Roi.objects.exists()
    trash_restore(entry=entry, user=annotator)
    assert set(Roi.objects.live()) == set(rois)
    assert Mosaic.objects.get() == built


def test_follow_ups_into_a_deleted_mosaic_are_stopped_and_deleted(
    built: Mosaic, lab: Lab, annotator: User, django_capture_on_commit_callbacks: OnCommit
) -> None:
    later = make_mosaic(make_video(lab, annotator, accession=built.case.accession, name="Later"))
    assert later.canvas is not None
    assert built.canvas is not None
    roi = roi_create(canvas=later.canvas, user=annotator, geometry=SQUARE).roi
    requested = followup_create(roi=roi, target=built.canvas, user=annotator)
    picture = archive_storage.derived_folder(requested.followup.pk) / "hit-1.jpg"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"x")
    with django_capture_on_commit_callbacks(execute=True):
        trash_purge(entry=mosaic_delete(mosaic=built, user=annotator), user=None)
    assert Job.objects.get(kind="followup_find").state == "cancelled"
    assert not Followup.objects.exists()
    assert not picture.parent.exists()
    assert Roi.objects.get() == roi


def test_stages_in_use_by_another_mosaic_remain(
    ready_video: Video, annotator: User, django_capture_on_commit_callbacks: OnCommit
) -> None:
    def stopped(**config: Any) -> Mosaic:
        mosaic = Mosaic.objects.create(
            lab=ready_video.lab,
            case=ready_video.case,
            video=ready_video,
            state="failed",
            config=config,
            config_hash=options_hash(config),
        )
        build_cache_stages(mosaic).mkdir(parents=True, exist_ok=True)
        return mosaic

    short, longer, other = stopped(end_s=3.0), stopped(end_s=5.0), stopped(step=2)
    assert build_cache_folder(short) == build_cache_folder(longer) != build_cache_folder(other)
    for mosaic, is_left in ((short, True), (other, False), (longer, False)):
        folder = build_cache_folder(mosaic)
        with django_capture_on_commit_callbacks(execute=True):
            trash_purge(entry=mosaic_delete(mosaic=mosaic, user=annotator), user=None)
        assert folder.exists() == is_left


def test_a_waiting_build_is_cancelled_first(
    ready_video: Video, annotator: User, django_capture_on_commit_callbacks: OnCommit
) -> None:
    mosaic = mosaic_create(video=ready_video, user=annotator).mosaic
    build_cache_stages(mosaic).mkdir(parents=True)
    with django_capture_on_commit_callbacks(execute=True):
        entry = mosaic_delete(mosaic=mosaic, user=annotator)
        trash_purge(entry=entry, user=None)
    assert Job.objects.get().state == "cancelled"
    assert not build_cache_folder(mosaic).exists()


def test_a_deleted_running_build_stops_and_leaves_no_files(
    video: Video,
    annotator: User,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: OnCommit,
) -> None:
    import ml.mosaic as engine

    requested, build, stored = mosaic_create(video=video, user=annotator), engine.build_mosaic, []

    def delete_during_build(*args: Any, progress: Any, **more: Any) -> Any:
        def note(done: int, total: int, phase: str) -> None:
            if phase == "register" and Mosaic.objects.exists():
                mosaic_delete(mosaic=Mosaic.objects.get(), user=annotator)
                stored.append(build_cache_stages(requested.mosaic).exists())
            progress(done, total, phase)

        return build(*args, progress=note, **more)

    monkeypatch.setattr(engine, "build_mosaic", delete_during_build)
    with django_capture_on_commit_callbacks(execute=True):
        job = run_job(requested.job)
    assert (job.state, stored) == ("cancelled", [True])
    assert not Mosaic.objects.exists()
    assert Mosaic.all_objects.get().state == "failed", "it does not wait for ever if it comes back"
    assert not Canvas.all_objects.filter(kind="mosaic").exists()
    assert not archive_storage.derived_folder(requested.mosaic.pk).exists()


def test_who_may_delete(built: Mosaic, viewer: User, manager: User, annotator: User) -> None:
    with pytest.raises(ForbiddenError):
        mosaic_delete(mosaic=built, user=viewer)
    theirs = mosaic_create(video=built.video, user=manager, config={"step": 2}).mosaic
    with pytest.raises(ForbiddenError):  # its build is another person's
        mosaic_delete(mosaic=theirs, user=annotator)
    assert Mosaic.objects.count() == 2
    assert Job.objects.get().state == "queued"
    mosaic_delete(mosaic=built, user=annotator)
    mosaic_delete(mosaic=theirs, user=manager)
    assert not Mosaic.objects.exists()


def test_the_page_deletes_and_redirects_to_the_mosaics_of_its_video(
    page: Client, built: Mosaic
) -> None:
    path = reverse("mosaics:mosaic_delete", args=[built.pk])
    assert path in page.get(reverse("mosaics:mosaic_detail", args=[built.pk])).content.decode()
    assert page.get(path).status_code == 405
    answer = page.post(path, follow=True)
    assert answer.redirect_chain == [(reverse("mosaics:video_mosaics", args=[built.video_id]), 302)]
    assert "Sweep mosaic was deleted." in answer.content.decode()


def test_rest(
    api: APIClient, api_as: Any, viewer: User, annotator: User, built: Mosaic, foreign_built: Mosaic
) -> None:
    def path(mosaic: Mosaic) -> str:
        return f"/api/v1/mosaics/{mosaic.pk}/"

    assert APIClient().delete(path(built)).status_code == 401
    assert api_as(viewer).delete(path(built)).status_code == 403
    assert api.delete(path(foreign_built)).status_code == 404
    assert built.canvas is not None
    roi_create(canvas=built.canvas, user=annotator, geometry=SQUARE)
    assert api.delete(path(built)).status_code == 204
    assert api.get(path(built)).status_code == 404
    assert Mosaic.objects.get() == foreign_built
