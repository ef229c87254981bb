"""Asking for a mosaic: once for each configuration, in the right state, by the right people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portal.archive.models import Canvas, TrashEntry, Video
from portal.archive.services.items import item_rename
from portal.core.errors import ConflictError, InvalidInputError
from portal.jobs.models import Job
from portal.labs.models import User
from portal.mosaics.build import BuiltComponent, BuiltMosaic
from portal.mosaics.models import Mosaic
from portal.mosaics.services.mosaics import mosaic_create, mosaic_job_ended, mosaic_ready
from portal.mosaics.services.removal import mosaic_delete


def test_two_requests_start_one_build(ready_video: Video, annotator: User) -> None:
    first = mosaic_create(video=ready_video, user=annotator)
    again = mosaic_create(
        video=ready_video, user=annotator, config={"step": 1, "motion_model": "auto"}
    )
    assert (first.is_new, again.is_new) == (True, False)
    assert first.mosaic == again.mosaic
    assert first.job == again.job
    job = Job.objects.get()
    assert (job.kind, job.queue, job.target_id) == ("mosaic_build", "gpu", first.mosaic.pk)


def test_another_configuration_is_another_mosaic(ready_video: Video, annotator: User) -> None:
    plain = mosaic_create(video=ready_video, user=annotator).mosaic
    other = mosaic_create(video=ready_video, user=annotator, config={"step": 2}).mosaic
    assert plain != other
    assert other.config == {"step": 2}
    assert other.name == "Sweep mosaic (every 2nd frame)"


def test_a_built_mosaic_is_answered_and_not_built_again(built: Mosaic, annotator: User) -> None:
    requested = mosaic_create(video=built.video, user=annotator)
    assert (requested.mosaic, requested.is_new, requested.job) == (built, False, None)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"step": 0}, "1 to 100"),
        ({"step": 101}, "1 to 100"),
        ({"step": True}, "1 to 100"),
        ({"step": "2"}, "1 to 100"),
        ({"motion_model": "magic"}, "one of auto"),
        ({"motion_model": []}, "one of auto"),
        ({"max_canvas_px": 1}, "unknown 'max_canvas_px'"),
    ],
)
def test_a_wrong_configuration_is_refused(
    ready_video: Video, annotator: User, config: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        mosaic_create(video=ready_video, user=annotator, config=config)
    assert not Mosaic.objects.exists()


def test_a_video_that_is_not_ready_is_refused(ready_video: Video, annotator: User) -> None:
    for state in ("preparing", "failed"):
        ready_video.state = state
        with pytest.raises(ConflictError, match="not ready"):
            mosaic_create(video=ready_video, user=annotator)
    assert not Job.objects.exists()


def test_a_ready_mosaic_remains_ready_when_a_job_fails(built: Mosaic) -> None:
    payload = {"kind": "mosaic_build", "state": "failed", "target_id": str(built.pk)}
    mosaic_job_ended(payload=payload)
    built.refresh_from_db()
    assert built.state == "ready"


def test_the_end_of_other_jobs_changes_nothing(ready_video: Video, annotator: User) -> None:
    mosaic = mosaic_create(video=ready_video, user=annotator).mosaic
    for kind, state in (("slide_ingest", "failed"), ("mosaic_build", "succeeded")):
        mosaic_job_ended(payload={"kind": kind, "state": state, "target_id": str(mosaic.pk)})
    mosaic.refresh_from_db()
    assert mosaic.state == "preparing"


def test_mosaics_follow_the_title_of_their_video(built: Mosaic, annotator: User) -> None:
    """A patient's name removed from the title of a video is gone from its mosaics' titles, too."""
    before = built.video.name
    item_rename(item=built.video, user=annotator, name="Second look")
    built.refresh_from_db()
    assert built.name.startswith("Second look mosaic")
    names = [component.canvas.name for component in built.components.select_related("canvas")]
    assert names and all(name.startswith("Second look mosaic") for name in names)
    assert not Job.objects.filter(target_name__contains=before).exists()


def test_a_mosaic_in_the_trash_follows_the_title_too(built: Mosaic, annotator: User) -> None:
    mosaic_delete(mosaic=built, user=annotator)
    item_rename(item=built.video, user=annotator, name="Second look")
    names = Canvas.all_objects.filter(mosaic_component__mosaic=built).values_list("name", flat=True)
    assert names and all(name.startswith("Second look mosaic") for name in names)
    assert TrashEntry.objects.get(target_id=built.pk).name.startswith("Second look mosaic")


def test_a_title_that_changes_while_its_mosaic_is_built_stays(
    built: Mosaic, annotator: User, tmp_path: Path
) -> None:
    at_work = Mosaic.objects.select_related("video").get(pk=built.pk)  # as the job has it
    before = built.video.name
    item_rename(item=built.video, user=annotator, name="Second look")
    component = built.components.select_related("canvas").get()
    component.delete()
    made = BuiltComponent(
        index=0,
        pyramid="mosaic.tif",
        preview="preview.jpg",
        width_px=component.canvas.width_px,
        height_px=component.canvas.height_px,
        levels=component.canvas.levels,
        content_hash=component.canvas.content_hash,
        anchor_index=0,
        registered_count=0,
    )
    (tmp_path / "made").mkdir()
    canvas = mosaic_ready(
        mosaic=at_work, folder=tmp_path / "made", built=BuiltMosaic((made,), "affine", (), 1.0)
    )
    assert canvas.name.startswith("Second look mosaic")
    assert Mosaic.objects.get(pk=built.pk).name.startswith("Second look mosaic")
    assert before not in canvas.name
