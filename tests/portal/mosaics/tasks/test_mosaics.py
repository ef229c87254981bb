"""The build, from a real small video to a canvas with every frame's status."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ml.errors import MosaicError
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas, Video
from portal.archive.selectors.frames import frame_table
from portal.archive.storage import files as archive_storage
from portal.core.models import Event
from portal.core.tasks import LeaseLost
from portal.jobs.models import Job
from portal.jobs.services import job_cancel, job_retry
from portal.labs.models import Lab, User
from portal.mosaics.build_cache import build_cache_folder
from portal.mosaics.models import Mosaic, MosaicFrame
from portal.mosaics.options import MOTION_MODELS
from portal.mosaics.selectors.frames import frame_runs, mosaic_report, runs_lost
from portal.mosaics.selectors.frames_at_point import frames_at_point
from portal.mosaics.selectors.mosaics import mosaic_get
from portal.mosaics.services.mosaics import mosaic_create, mosaic_refused
from tests.portal.mosaics.conftest import (
    FRAME_HEIGHT,
    FRAME_WIDTH,
    STEP_PX,
    run_job,
    texture,
    write_video,
)


def rows(mosaic: Mosaic) -> list[Any]:
    fields = ("id", "index", "pts", "status", "reason", "H_mosaic_from_frame")
    return list(MosaicFrame.objects.filter(mosaic=mosaic).values_list(*fields))


def test_a_sweep_becomes_a_canvas_with_every_frame_accounted_for(
    mosaic: Mosaic, annotator: User
) -> None:
    assert mosaic.state == "ready"
    canvas = mosaic.canvas
    assert canvas is not None
    assert canvas.kind == "mosaic"
    assert canvas.width_px >= 224 + 12 * 8
    assert mosaic.frame_count == 10
    report = mosaic_report(mosaic)
    assert (report.frames, report.registered) == (10, mosaic.registered_count)
    assert report.registered >= 8
    assert report.registered + report.skipped + report.failed == 10
    dark = MosaicFrame.objects.get(mosaic=mosaic, index=4)
    assert (dark.status, dark.H_mosaic_from_frame) == ("skipped", None)
    assert dark.reason
    assert [row[2] for row in rows(mosaic)] == frame_table(mosaic.video).pts.tolist()
    assert archive_storage.resolve(canvas.pixels_path).is_file()
    assert archive_storage.resolve(canvas.thumbnail_path).is_file()
    assert canvas.levels[0]["width_px"] == canvas.width_px
    roi = roi_create(
        canvas=canvas,
        user=annotator,
        geometry={"type": "Polygon", "coordinates": [[[5, 5], [50, 5], [50, 50], [5, 50]]]},
    ).roi
    assert roi.area_px == 45 * 45


def test_transforms_follow_the_scope_and_a_point_names_its_frames(mosaic: Mosaic) -> None:
    placed = {
        frame.index: np.array(frame.H_mosaic_from_frame)
        for frame in MosaicFrame.objects.filter(mosaic=mosaic, status="registered")
    }
    first, last = min(placed), max(placed)
    centre = np.array([111.5, 87.5, 1.0])
    ends = [placed[index] @ centre for index in (first, last)]
    shift = ends[1][:2] / ends[1][2] - ends[0][:2] / ends[0][2]
    assert shift == pytest.approx([12 * (last - first), 0], abs=3)
    frame = MosaicFrame.objects.filter(mosaic=mosaic, status="registered").first()
    assert frame is not None
    x, y, w = np.array(frame.H_mosaic_from_frame) @ np.array([111.5, 87.5, 1.0])
    seen = {s.index: s for s in frames_at_point(mosaic, x=x / w, y=y / w).frames}
    assert seen[frame.index].pts == frame.pts
    assert seen[frame.index].xy_frame == pytest.approx((111.5, 87.5), abs=0.5)
    sharpness = [s.sharpness or 0.0 for s in seen.values()]
    assert sharpness == sorted(sharpness, reverse=True)
    assert 4 not in seen


def test_a_span_is_built_only_from_its_frames(video: Video, annotator: User) -> None:
    requested = mosaic_create(video=video, user=annotator, config={"start_s": 0.2, "end_s": 0.32})
    job = run_job(requested.job)
    assert job.state == "succeeded", job.error_message + job.traceback
    assert [row[1] for row in rows(requested.mosaic)] == [5, 6, 7, 8]
    requested.mosaic.refresh_from_db()
    assert requested.mosaic.name.endswith("mosaic (0.2 s to 0.32 s)")


def test_the_parts_and_bounds_of_a_build_are_stored(mosaic: Mosaic) -> None:
    component = mosaic.components.get()
    assert (component.index, component.canvas) == (0, mosaic.canvas)
    assert component.registered_count == mosaic.registered_count
    placed = MosaicFrame.objects.filter(mosaic=mosaic, status="registered")
    assert set(placed.values_list("component", flat=True)) == {0}
    assert not placed.filter(left=None).exists()
    assert mosaic.engine["config_hash"]


@pytest.mark.slow
def test_a_cut_in_the_scene_gives_two_parts_each_with_its_frames_and_layers(
    ingest: Callable[..., Video], lab: Lab, annotator: User, tmp_path: Path
) -> None:
    """Ten frames over one wall, then ten over another: nothing joins them."""
    frames = []
    for seed in (11, 12):
        scene = texture(FRAME_WIDTH + STEP_PX * 10, FRAME_HEIGHT, seed)
        frames += [
            np.ascontiguousarray(scene[:, STEP_PX * i : STEP_PX * i + FRAME_WIDTH])
            for i in range(10)
        ]
    video = ingest(lab, annotator, write_video(tmp_path / "cut.mp4", frames))
    requested = mosaic_create(video=video, user=annotator)
    job = run_job(requested.job)
    assert job.state == "succeeded", job.error_message + job.traceback
    components = list(requested.mosaic.components.select_related("canvas"))
    assert [component.index for component in components] == [0, 1]
    assert [component.canvas.name for component in components] == [
        "cut mosaic, component 1",
        "cut mosaic, component 2",
    ]
    for component, wanted in zip(components, (set(range(10)), set(range(10, 20))), strict=True):
        placed = MosaicFrame.objects.filter(mosaic=requested.mosaic, component=component.index)
        assert set(placed.values_list("index", flat=True)) <= wanted
        assert placed.count() == component.registered_count >= 8
        assert component.spans[0]["first_s"] is not None
        assert archive_storage.resolve(component.canvas.pixels_path).is_file()
        names = {layer["name"] for layer in component.layers}
        assert {"coverage", "count", "uncertainty", "time"} <= names
        for layer in component.layers:
            assert (archive_storage.derived_folder(requested.mosaic.pk) / layer["png"]).is_file()
    again = mosaic_get(annotator, requested.mosaic.pk)
    second = frames_at_point(
        again, x=components[1].canvas.width_px / 2, y=FRAME_HEIGHT / 2, component=1
    )
    assert second.count > 0
    assert all(frame.index >= 10 for frame in second.frames)


def test_running_twice_leaves_the_same_rows_and_bytes(mosaic: Mosaic, annotator: User) -> None:
    canvas = mosaic.canvas
    assert canvas is not None
    before, pixels = rows(mosaic), archive_storage.resolve(canvas.pixels_path).read_bytes()
    job = Job.objects.get(kind="mosaic_build")
    Job.objects.filter(pk=job.pk).update(state="queued", not_before=None)
    assert run_job(job).state == "succeeded"  # ready: nothing is done again
    Mosaic.objects.update(state="preparing", canvas=None)
    Job.objects.filter(pk=job.pk).update(state="queued", not_before=None)
    assert run_job(job).state == "succeeded"  # a worker died before its last commit
    assert rows(mosaic) == before
    assert Canvas.objects.filter(kind="mosaic").count() == 1
    assert archive_storage.resolve(canvas.pixels_path).read_bytes() == pixels


def test_a_build_that_loses_its_lease_writes_nothing(
    video: Video, annotator: User, monkeypatch: pytest.MonkeyPatch, storage: Path
) -> None:
    requested = mosaic_create(video=video, user=annotator)

    def lose(self: Any) -> Any:
        raise LeaseLost("taken over")

    monkeypatch.setattr("portal.jobs.worker.context.LeasedJobContext.effect", lose)
    assert run_job(requested.job).state == "running"  # another worker has it now
    assert not Canvas.objects.filter(kind="mosaic").exists()
    assert not MosaicFrame.objects.exists()
    assert not archive_storage.derived_folder(requested.mosaic.pk).exists()
    assert [p.name for p in (storage / "scratch").iterdir()] == [
        build_cache_folder(requested.mosaic).name
    ]


def test_a_video_without_anything_to_see_fails_with_the_reason(
    ingest: Callable[..., Video], lab: Lab, annotator: User, blind_file: Path
) -> None:
    video = ingest(lab, annotator, blind_file)
    requested = mosaic_create(video=video, user=annotator)
    job = run_job(requested.job)
    mosaic = Mosaic.objects.get()
    assert (job.state, mosaic.state) == ("failed", "failed")
    assert (job.attempts, mosaic.error_code) == (1, job.error_code)
    assert mosaic.error_message == job.error_message
    assert mosaic.error_message.endswith(".")
    assert not job.traceback
    assert not Canvas.objects.filter(kind="mosaic").exists()
    assert Event.objects.filter(name="mosaic.failed").count() == 1


def test_a_video_without_usable_frames_reports_seconds_and_reasons(
    ingest: Callable[..., Video], lab: Lab, annotator: User, tmp_path: Path
) -> None:
    """Half a second of darkness, then a wall without structure, 25 frames a second."""
    shape = (FRAME_HEIGHT, FRAME_WIDTH, 3)
    frames = [np.zeros(shape, np.uint8)] * 12 + [np.full(shape, 128, np.uint8)] * 8
    video = ingest(lab, annotator, write_video(tmp_path / "lost.mp4", frames))
    requested = mosaic_create(video=video, user=annotator)
    job = run_job(requested.job)
    requested.mosaic.refresh_from_db()
    assert (
        requested.mosaic.error_message
        == job.error_message
        == (
            "None of 20 frames is usable; too dark: 0:00.0 to 0:00.4 (12 frames);"
            " no structure: 0:00.5 to 0:00.8 (8 frames)."
        )
    )
    lost = runs_lost(frame_runs(mosaic_get(annotator, requested.mosaic.pk)))
    assert [(run.kind.code, run.width, run.first_s, run.last_s) for run in lost] == [
        ("dark", 12, 0.0, 0.44),
        ("uniform", 8, 0.48, 0.76),
    ]
    again = run_job(mosaic_create(video=video, user=annotator).job)
    assert again.error_message == job.error_message
    assert MosaicFrame.objects.filter(mosaic=requested.mosaic).count() == 20


def test_a_span_that_fails_otherwise_is_named(
    video: Video, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ml.mosaic as engine

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise MosaicError("blend: the mosaic would be too large")

    monkeypatch.setattr(engine, "build_mosaic", refuse)
    requested = mosaic_create(video=video, user=annotator, config={"start_s": 0.1})
    assert run_job(requested.job).error_message == (
        "From 0.12 s to 0.36 s: The mosaic would be too large."
    )


def test_a_refused_build_does_not_change_a_ready_mosaic(built: Mosaic) -> None:
    mosaic_refused(mosaic=built, frames=[])
    assert built.frames.count() == 8


def test_a_running_build_is_cancelled_and_can_be_requested_again(
    video: Video, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ml.mosaic as engine

    requested = mosaic_create(video=video, user=annotator)
    assert requested.job is not None
    build = engine.build_mosaic

    def build_slowly(*args: Any, progress: Any, **kwargs: Any) -> Any:
        Job.objects.filter(pk=requested.job.pk).update(cancel_requested=True)  # type: ignore[union-attr]
        return build(*args, progress=progress, **kwargs)

    monkeypatch.setattr(engine, "build_mosaic", build_slowly)
    assert run_job(requested.job).state == "cancelled"
    mosaic = Mosaic.objects.get()
    assert (mosaic.state, mosaic.error_code) == ("failed", "cancelled")
    assert not MosaicFrame.objects.exists()
    monkeypatch.undo()
    again = mosaic_create(video=video, user=annotator)
    assert (again.is_new, again.mosaic.pk) == (True, mosaic.pk)
    assert again.job is not None
    assert again.job.pk != requested.job.pk


def test_a_waiting_build_is_cancelled_at_once(video: Video, annotator: User) -> None:
    requested = mosaic_create(video=video, user=annotator)
    assert requested.job is not None
    job_cancel(job=requested.job, user=annotator)
    mosaic = Mosaic.objects.get()
    assert (mosaic.state, mosaic.error_code) == ("failed", "cancelled")
    retried = run_job(job_retry(job=Job.objects.get(pk=requested.job.pk), user=annotator))
    mosaic.refresh_from_db()
    assert (retried.state, mosaic.state, mosaic.error_code) == ("succeeded", "ready", "")


def test_a_mosaic_deleted_before_its_job_ran_fails_clearly(video: Video, annotator: User) -> None:
    requested = mosaic_create(video=video, user=annotator)
    Mosaic.objects.all().delete()
    job = run_job(requested.job)
    assert (job.state, job.error_code) == ("failed", "gone")


def test_a_missing_file_fails_clearly(video: Video, annotator: User) -> None:
    assert video.canvas is not None
    archive_storage.resolve(video.canvas.pixels_path).unlink()
    job = run_job(mosaic_create(video=video, user=annotator).job)
    assert (job.state, job.error_code) == ("failed", "file-missing")


def test_the_portals_choices_are_the_engines() -> None:
    from ml.keypoints.verification.estimation import MODEL_NAMES
    from ml.mosaic.config import MosaicConfig

    fields = {field.name: field.default for field in dataclasses.fields(MosaicConfig)}
    assert (fields["step"], fields["motion_model"]) == (1, "auto")
    assert set(MOTION_MODELS) - {"auto"} <= set(MODEL_NAMES)
    for model in MOTION_MODELS:
        MosaicConfig(step=100, motion_model=model)
