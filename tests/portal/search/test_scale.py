"""Pictures of ROIs at one scale."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from portal.search.thumbnails.regions import Scale, scale_of


@pytest.fixture
def roi(world):
    canvas = world.canvas(world.case("A1"))
    canvas.mpp_x = canvas.mpp_y = 2.0
    canvas.save()
    return world.roi(canvas, 100, 100, 60)


def picture(page, roi, query=""):
    answer = page.get(f"/rois/{roi.pk}/thumbnail.jpg?v=1{query}")
    assert answer.status_code == 200
    return np.asarray(Image.open(io.BytesIO(answer.content))).astype(int), answer["ETag"]


def outline_width(pixels):
    """Columns between the outermost yellow ones, the colour of what has no label."""
    is_line = (pixels[..., 0] > 180) & (pixels[..., 2] < 120)
    columns = np.nonzero(is_line.any(axis=0))[0]
    return np.ptp(columns) + 1


def test_the_scale_is_the_smallest_that_holds_the_region(roi):
    assert scale_of(roi) == Scale(256, "um")  # 60 px of 2 um and their margin, four to three: 218
    assert (Scale(256, "um").text, Scale(2048, "um").text) == ("256 µm", "2.05 mm")


def test_the_outline_is_drawn_at_the_requested_width(page, roi):
    pixels, _ = picture(page, roi, "&width=256um")
    assert outline_width(pixels) == pytest.approx(320 * 120 / 256, abs=4)
    pixels, _ = picture(page, roi, "&width=512um")
    assert outline_width(pixels) == pytest.approx(320 * 120 / 512, abs=4)


def test_a_new_pixel_size_is_a_new_picture(page, roi):
    _, before = picture(page, roi, "&width=512um")
    roi.canvas.mpp_x = 4.0
    roi.canvas.save()
    pixels, after = picture(page, roi, "&width=512um")
    assert outline_width(pixels) == pytest.approx(320 * 240 / 512, abs=4)
    assert before != after


def test_a_thumbnail_without_a_scale_shows_its_own_width(page, world):
    bare = world.roi(world.canvas(world.case("A2")), 100, 100, 60)
    assert scale_of(bare) == Scale(128, "px")
    plain, _ = picture(page, bare)
    for width in ("256um", "7um", "../x"):
        assert (picture(page, bare, f"&width={width}")[0] == plain).all()
