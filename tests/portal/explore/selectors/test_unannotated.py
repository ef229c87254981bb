"""Not annotated yet: tissue that looks like no region, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from portal.annotations.services.rois import roi_delete
from portal.archive.models import Modality
from portal.embeddings.selectors.encoders import encoder_default
from portal.explore.models import TissueSample
from portal.explore.selectors.unannotated import unannotated
from tests.portal.embedded_rois import box_vector

REACH = 30.0  # farther than this is unlike


@pytest.fixture
def archive(world, monkeypatch):
    """A region in the upper left corner of one image; two images without any."""
    world.drawn = world.canvas(world.case("A1", "p1"))
    world.roi_there = world.embedded(world.drawn, 0, 0, 20)
    world.near, world.far = (world.canvas(world.case(f"B{n}", f"q{n}")) for n in (1, 2))
    monkeypatch.setitem(unannotated.__globals__, "calibration_for", lambda encoder: object())
    monkeypatch.setitem(
        unannotated.__globals__, "close_distance", lambda calibration, searched: REACH
    )
    return world


def looked_through(world, canvas, corners, *, is_complete=True, side_px=20):
    """Squares of the tissue of a slide, embedded as the regions are."""
    boxes = [(left, top, left + side_px, top + side_px) for left, top in corners]
    vectors = np.array([box_vector(box) for box in boxes], "<f4")
    return TissueSample.objects.create(
        lab=world.lab,
        canvas=canvas,
        encoder=encoder_default(Modality.HISTOLOGY),
        user=world.user,
        side_px=side_px,
        total=len(boxes),
        tried=len(boxes),
        is_complete=is_complete,
        boxes=np.array(boxes, "<f4").tobytes(),
        vectors=vectors.tobytes(),
    )


def page_of(world, start=0, count=10):
    encoder = encoder_default(Modality.HISTOLOGY)
    kind = Modality.HISTOLOGY
    return unannotated(
        world.user, lab=world.lab, kind=kind, encoder=encoder, start=start, count=count
    )


def regions_of(world, **page):
    return [
        (item.canvas, item.novelty and item.novelty.percent)
        for item in page_of(world, **page).found
    ]


def test_the_tissue_most_unlike_every_region_comes_first(archive):
    """The region is at (10, 10); squares within 30 of it are similar to it."""
    looked_through(archive, archive.near, [(0, 0), (10, 0), (20, 20), (40, 40)])
    looked_through(archive, archive.far, [(0, 0), (200, 200), (300, 10), (10, 300)])
    looked_through(archive, archive.drawn, [(0, 0), (5, 5)])
    assert regions_of(archive) == [(archive.far, 75), (archive.near, 25), (archive.drawn, 0)]
    page = page_of(archive)
    assert (page.total, page.without, page.images) == (3, 2, 3)
    assert (page.looked_through, page.compared) == (3, 1)
    assert [item.regions for item in page.found] == [0, 0, 1]
    assert [(item.novelty.unknown, item.novelty.squares) for item in page.found] == [
        (3, 4),
        (1, 4),
        (0, 2),
    ]


def test_pages_list_sampled_images_before_empty_ones(archive):
    looked_through(archive, archive.drawn, [(200, 200)])
    assert regions_of(archive, count=1) == [(archive.drawn, 100)]
    assert regions_of(archive, start=1, count=1) == [(archive.far, None)]  # the newest first
    assert regions_of(archive, start=2, count=5) == [(archive.near, None)]
    assert regions_of(archive, start=3) == []


def test_a_deleted_region_cannot_be_explained(archive):
    looked_through(archive, archive.near, [(0, 0), (200, 200)])
    assert dict(regions_of(archive))[archive.near] == 50
    roi_delete(roi=archive.roi_there, user=archive.user, expected_version=1)
    assert dict(regions_of(archive))[archive.near] == 100
    assert page_of(archive).compared == 0


def test_similar_tissue_is_known_after_a_region_is_drawn(archive):
    looked_through(archive, archive.far, [(200, 200), (300, 10)])
    assert dict(regions_of(archive))[archive.far] == 100
    archive.embedded(archive.drawn, 205, 205, 20)
    assert dict(regions_of(archive))[archive.far] == 50


def test_incomplete_samples_are_ignored_and_the_newest_counts(archive):
    looked_through(archive, archive.near, [(200, 200)], is_complete=False)
    assert dict(regions_of(archive))[archive.near] is None
    looked_through(archive, archive.far, [(200, 200)], side_px=40)
    looked_through(archive, archive.far, [(0, 0)])
    assert dict(regions_of(archive))[archive.far] == 0


def test_without_a_calibration_no_tissue_is_unlike(archive, monkeypatch):
    monkeypatch.setitem(unannotated.__globals__, "calibration_for", lambda encoder: None)
    looked_through(archive, archive.far, [(200, 200), (300, 300)])
    assert dict(regions_of(archive))[archive.far] == 0


def test_large_samples_are_subsampled_evenly(archive, monkeypatch):
    monkeypatch.setitem(unannotated.__globals__, "MAX_SQUARES", 10)
    corners = [(0, 0)] * 50 + [(200, 200)] * 50
    looked_through(archive, archive.near, corners)
    page = page_of(archive)
    novelty = next(item.novelty for item in page.found if item.canvas == archive.near)
    assert (novelty.squares, novelty.percent) == (10, 50)
