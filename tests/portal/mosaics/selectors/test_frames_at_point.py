"""Frames that saw a point: worked by hand, in one query, and refusals."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core.errors import ConflictError, NotFoundError
from portal.mosaics.models import Mosaic, MosaicFrame
from portal.mosaics.selectors.frames_at_point import frames_at_point


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


def test_a_lookup_is_one_query_and_reads_only_near_rows(built: Mosaic) -> None:
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
        with pytest.raises(NotFoundError, match="170 x 80 px"):
            frames_at_point(built, x=x, y=y)


def test_a_component_that_is_not_there_is_named(built: Mosaic) -> None:
    with pytest.raises(NotFoundError, match=r"3; .*1"):
        frames_at_point(built, x=1, y=1, component=3)


def test_a_mosaic_that_is_not_ready_has_no_frames_at_a_point(built: Mosaic) -> None:
    built.components.all().delete()
    with pytest.raises(ConflictError, match="not ready"):
        frames_at_point(built, x=1, y=1)
