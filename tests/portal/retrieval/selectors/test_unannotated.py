"""Not annotated yet: tissue that looks like no region, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from portal.annotations.services import roi_delete
from portal.retrieval.models import EncoderKind, TissueSample
from portal.retrieval.selectors.browse import unannotated
from portal.retrieval.selectors.encoders import encoder_default
from tests.portal.retrieval.conftest import box_vector

REACH = 30.0  # farther than this is unlike


@pytest.fixture
def archive(world, monkeypatch):
    """A region in the upper left corner of one image; two images without any."""
    world.drawn = world.canvas(world.case("A1", "p1"))
    world.roi_there = world.embedded(world.drawn, 0, 0, 20)
    world.near, world.far = (world.canvas(world.case(f"B{n}", f"q{n}")) for n in (1, 2))
    monkeypatch.setitem(unannotated.__globals__, "calibration_for", lambda encoder: object())
    monkeypatch.setitem(unannotated.__globals__, "reach_of", lambda calibration, searched: REACH)
    return world


def looked_through(world, canvas, corners, *, is_complete=True, side_px=20):
    """Squares of the tissue of a slide, embedded as the regions are."""
    boxes = [(left, top, left + side_px, top + side_px) for left, top in corners]
    vectors = np.array([box_vector(one) for one in boxes], "<f4")
    return TissueSample.objects.create(
        lab=world.lab,
        canvas=canvas,
        encoder=encoder_default(EncoderKind.HISTOLOGY),
        user=world.user,
        side_px=side_px,
        total=len(boxes),
        tried=len(boxes),
        is_complete=is_complete,
        boxes=np.array(boxes, "<f4").tobytes(),
        vectors=vectors.tobytes(),
    )


def asked(world, start=0, count=10):
    encoder = encoder_default(EncoderKind.HISTOLOGY)
    kind = EncoderKind.HISTOLOGY
    return unannotated(
        world.user, lab=world.lab, kind=kind, encoder=encoder, start=start, count=count
    )


def told(world, **page):
    return [(one.canvas, one.novelty and one.novelty.percent) for one in asked(world, **page).found]


def test_the_tissue_most_unlike_every_region_comes_first(archive):
    """The region lies at (10, 10): squares at most 30 from it are like it."""
    looked_through(archive, archive.near, [(0, 0), (10, 0), (20, 20), (40, 40)])
    looked_through(archive, archive.far, [(0, 0), (200, 200), (300, 10), (10, 300)])
    looked_through(archive, archive.drawn, [(0, 0), (5, 5)])
    assert told(archive) == [(archive.far, 75), (archive.near, 25), (archive.drawn, 0)]
    page = asked(archive)
    assert (page.total, page.without, page.images) == (3, 2, 3)
    assert (page.looked_through, page.compared) == (3, 1)
    assert [one.regions for one in page.found] == [0, 0, 1]
    assert [(one.novelty.unknown, one.novelty.squares) for one in page.found] == [
        (3, 4),
        (1, 4),
        (0, 2),
    ]


def test_pages_go_from_what_was_looked_through_to_what_has_no_region(archive):
    looked_through(archive, archive.drawn, [(200, 200)])
    assert told(archive, count=1) == [(archive.drawn, 100)]
    assert told(archive, start=1, count=1) == [(archive.far, None)]  # the newest first
    assert told(archive, start=2, count=5) == [(archive.near, None)]
    assert told(archive, start=3) == []


def test_a_region_that_was_deleted_is_compared_with_no_more(archive):
    looked_through(archive, archive.near, [(0, 0), (200, 200)])
    assert dict(told(archive))[archive.near] == 50
    roi_delete(roi=archive.roi_there, user=archive.user, expected_version=1)
    assert dict(told(archive))[archive.near] == 100
    assert asked(archive).compared == 0


def test_a_new_region_makes_its_like_known(archive):
    looked_through(archive, archive.far, [(200, 200), (300, 10)])
    assert dict(told(archive))[archive.far] == 100
    archive.embedded(archive.drawn, 205, 205, 20)
    assert dict(told(archive))[archive.far] == 50


def test_half_a_sample_says_nothing_and_of_two_the_newest_counts(archive):
    looked_through(archive, archive.near, [(200, 200)], is_complete=False)
    assert dict(told(archive))[archive.near] is None
    looked_through(archive, archive.far, [(200, 200)], side_px=40)
    looked_through(archive, archive.far, [(0, 0)])
    assert dict(told(archive))[archive.far] == 0


def test_without_a_calibration_nothing_is_said_to_be_unlike(archive, monkeypatch):
    monkeypatch.setitem(unannotated.__globals__, "calibration_for", lambda encoder: None)
    looked_through(archive, archive.far, [(200, 200), (300, 300)])
    assert dict(told(archive))[archive.far] == 0


def test_of_many_squares_some_spread_over_all_are_compared(archive, monkeypatch):
    monkeypatch.setitem(unannotated.__globals__, "SQUARES_MOST", 10)
    corners = [(0, 0)] * 50 + [(200, 200)] * 50
    looked_through(archive, archive.near, corners)
    page = asked(archive)
    found = next(one.novelty for one in page.found if one.canvas == archive.near)
    assert (found.squares, found.percent) == (10, 50)
