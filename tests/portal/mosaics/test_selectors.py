"""Which frames saw a point; what became of the frames."""

from __future__ import annotations

import pytest

from portal.core.errors import ConflictError, NotFoundError
from portal.labs.models import User
from portal.mosaics.models import Mosaic, MosaicFrame
from portal.mosaics.selectors import frame_runs, frames_at, mosaic_get, mosaic_report


def test_frames_at_a_point_by_hand(built: Mosaic) -> None:
    """The frames that begin at 0, 10, 20 and 40 saw x = 45, the first nearest to its centre."""
    seen = frames_at(built, x=45, y=40)
    assert [s.index for s in seen] == [0, 1, 2, 4]
    assert seen[1].xy_frame == (35, 40)
    assert (seen[3].pts, seen[3].time_s) == (160, 0.16)
    assert seen[0].from_centre_px == pytest.approx(4.53, abs=0.01)


def test_a_point_behind_a_tilted_frame_is_not_seen_by_it(built: Mosaic) -> None:
    """Under this homography x = 45 is the image of a point with w < 0: no camera saw it there."""
    MosaicFrame.objects.filter(mosaic=built).exclude(index=0).delete()
    MosaicFrame.objects.filter(mosaic=built).update(
        H_mosaic_from_frame=[[1, 0, 0], [0, 1, 0], [0.05, 0, 1]]
    )
    assert frames_at(built, x=45, y=40) == []


def test_a_point_outside_is_refused(built: Mosaic) -> None:
    for x, y in ((-1, 5), (5, 81), (1000, 5)):
        with pytest.raises(NotFoundError, match="outside of the mosaic of 170 x 80 px"):
            frames_at(built, x=x, y=y)


def test_a_mosaic_that_is_not_ready_has_no_frames_at_a_point(built: Mosaic) -> None:
    built.canvas = None
    with pytest.raises(ConflictError, match="not ready"):
        frames_at(built, x=1, y=1)


def test_the_report_counts_every_frame_once(built: Mosaic) -> None:
    report = mosaic_report(built)
    assert (report.frames, report.registered, report.skipped, report.failed) == (8, 6, 1, 1)
    assert [(r.status, r.reason, r.count) for r in report.reasons] == [
        ("skipped", "blurred", 1),
        ("failed", "too few points agree", 1),
    ]


def test_runs_join_neighbours_that_ended_alike(built: Mosaic) -> None:
    runs = frame_runs(built)
    assert [(run.start, run.stop, run.status) for run in runs] == [
        (0, 3, "registered"),
        (3, 4, "skipped"),
        (4, 5, "registered"),
        (5, 6, "failed"),
        (6, 8, "registered"),
    ]
    assert sum(run.width for run in runs) == 8
    assert runs[0].words == "Frames 0 to 2, 0.00 s to 0.08 s: registered"
    assert runs[1].words == "Frame 3, 0.12 s: skipped, blurred"


def test_another_labs_mosaic_is_not_there(foreign_built: Mosaic, manager: User) -> None:
    with pytest.raises(NotFoundError):
        mosaic_get(manager, foreign_built.pk)
