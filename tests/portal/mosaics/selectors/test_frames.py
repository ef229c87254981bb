"""Which frames saw a point; what became of the frames."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core.errors import ConflictError, NotFoundError
from portal.mosaics.models import Mosaic, MosaicFrame
from portal.mosaics.planes import view_polygon
from portal.mosaics.selectors import (
    frame_columns,
    frame_runs,
    frames_at_point,
    mosaic_get,
    mosaic_report,
    reasons_of,
    runs_lost,
)


def test_frames_at_a_point_by_hand(built: Mosaic) -> None:
    """The frames that begin at 0, 10, 20 and 40 saw x = 45, the last one is the sharpest."""
    seen = frames_at_point(built, x=45, y=40)
    assert seen.count == 4
    assert [s.index for s in seen.frames] == [4, 2, 1, 0]
    assert seen.frames[2].xy_frame == (35, 40)
    assert (seen.frames[0].pts, seen.frames[0].time_s) == (160, 0.16)
    assert seen.frames[3].from_centre_px == pytest.approx(4.53, abs=0.01)
    assert seen.frames[0].outline == ((40, 0), (139, 0), (139, 79), (40, 79))


def test_only_the_best_are_given_and_all_are_counted(built: Mosaic) -> None:
    seen = frames_at_point(built, x=45, y=40, limit=2)
    assert (seen.count, [s.index for s in seen.frames]) == (4, [4, 2])


def test_without_sharpness_the_nearest_to_the_centre_comes_first(built: Mosaic) -> None:
    MosaicFrame.objects.update(sharpness=None)
    assert [s.index for s in frames_at_point(built, x=45, y=40).frames] == [0, 1, 2, 4]


def test_a_lookup_is_one_query_and_reads_only_what_is_near(built: Mosaic) -> None:
    mosaic = (
        Mosaic.objects.select_related("video__canvas").prefetch_related("components__canvas").get()
    )
    with CaptureQueriesContext(connection) as queries:
        frames_at_point(mosaic, x=45, y=40)
    assert len(queries) == 1
    MosaicFrame.objects.filter(index=4).update(left=300, right=400)  # bounds decide
    assert [s.index for s in frames_at_point(mosaic, x=45, y=40).frames] == [2, 1, 0]


def test_a_point_outside_the_scopes_view_was_not_seen(built: Mosaic) -> None:
    """A diamond: the corners of the frame are black."""
    built.view_outline = [[50, 0], [99, 40], [50, 79], [0, 40]]
    assert [s.index for s in frames_at_point(built, x=45, y=3).frames] == []
    assert [s.index for s in frames_at_point(built, x=55, y=40).frames] == [4, 2, 1, 0]


def test_a_point_behind_a_tilted_frame_is_not_seen_by_it(built: Mosaic) -> None:
    """Under this homography x = 45 is the image of a point with w < 0: no camera saw it there."""
    MosaicFrame.objects.filter(mosaic=built).exclude(index=0).delete()
    MosaicFrame.objects.filter(mosaic=built).update(
        H_mosaic_from_frame=[[1, 0, 0], [0, 1, 0], [0.05, 0, 1]]
    )
    assert frames_at_point(built, x=45, y=40).count == 0


def test_a_point_outside_is_refused(built: Mosaic) -> None:
    for x, y in ((-1, 5), (5, 81), (1000, 5)):
        with pytest.raises(NotFoundError, match="outside of the mosaic of 170 x 80 px"):
            frames_at_point(built, x=x, y=y)


def test_a_part_that_is_not_there_is_named(built: Mosaic) -> None:
    with pytest.raises(NotFoundError, match="no component 3; it has 1"):
        frames_at_point(built, x=1, y=1, component=3)


def test_a_mosaic_that_is_not_ready_has_no_frames_at_a_point(built: Mosaic) -> None:
    built.components.all().delete()
    with pytest.raises(ConflictError, match="not ready"):
        frames_at_point(built, x=1, y=1)


def test_the_report_counts_every_frame_once(built: Mosaic) -> None:
    report = mosaic_report(built)
    assert (report.frames, report.registered, report.skipped, report.failed) == (8, 6, 1, 1)
    assert [(r.status, r.reason.code, r.count) for r in report.reasons] == [
        ("skipped", "blurred", 1),
        ("failed", "no-match", 1),
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
    assert runs[0].words == "Frames 1 to 3, 0.00 s to 0.08 s: registered"
    assert runs[1].words == "Frame 4, 0.12 s: skipped, blurred"
    assert [r.code for r in reasons_of(runs)] == ["", "blurred", "no-match"]


def test_runs_of_one_kind_join_though_their_numbers_differ(built: Mosaic) -> None:
    MosaicFrame.objects.filter(index=3).update(reason="blurred: sharpness 40% of its neighbours'")
    MosaicFrame.objects.filter(index=4).update(
        status="skipped",
        reason="blurred: sharpness 38% of its neighbours'",
        reason_code="blurred",
    )
    lost = runs_lost(frame_runs(built))
    assert [(run.kind.code, run.width) for run in lost] == [("blurred", 2), ("no-match", 1)]
    assert lost[0].words == "Frames 4 to 5, 0.12 s to 0.16 s: skipped, blurred"


def test_columns_hold_every_frame_with_its_reason_and_outline(built: Mosaic) -> None:
    columns = frame_columns(built)
    assert columns["count"] == len(columns["index"]) == 8
    reasons = [columns["reasons"][row]["code"] for row in columns["reason"]]
    assert reasons == ["", "", "", "blurred", "", "no-match", "", ""]
    assert columns["outline"][2] == [20, 0, 119, 0, 119, 79, 20, 79]
    assert columns["outline"][3] is None


def test_without_an_outline_the_view_is_the_whole_frame() -> None:
    whole = view_polygon([], width_px=11, height_px=5)
    assert whole.tolist() == [[0, 0], [10, 0], [10, 4], [0, 4]]
    assert view_polygon([[1, 2], [3, 4], [5, 6]], width_px=9, height_px=9).shape == (3, 2)


def test_another_labs_mosaic_is_not_there(foreign_built: Mosaic, manager: object) -> None:
    with pytest.raises(NotFoundError):
        mosaic_get(manager, foreign_built.pk)  # type: ignore[arg-type]
