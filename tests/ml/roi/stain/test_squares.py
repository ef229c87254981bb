"""Squares over the tissue of a slide."""

import numpy as np
import pytest

from ml.errors import BadInputError
from ml.roi.stain.squares import tissue_squares
from tests.ml.roi.stain.test_outline import _slide

TISSUE = (60, 100, 300, 260)  # left, top, right, bottom


def _stained(tmp_path):
    pixels = np.full((400, 600, 3), 245, np.uint8)
    left, top, right, bottom = TISSUE
    pixels[top:bottom, left:right] = (190, 110, 170)
    return _slide(tmp_path, pixels)


def test_squares_contain_tissue_and_overlap_by_half(tmp_path):
    with _stained(tmp_path) as slide:
        squares = tissue_squares(slide, 40, max_count=1000)
    assert np.allclose(squares[:, 2:] - squares[:, :2], 40)
    left, top, right, bottom = TISSUE
    middle = (squares[:, :2] + squares[:, 2:]) / 2
    assert ((middle >= (left - 4, top - 4)) & (middle <= (right + 4, bottom + 4))).all()
    steps = np.diff(np.unique(squares[:, 0]))
    assert np.allclose(steps, 20, atol=1)
    inside = (240 / 20 + 1) * (160 / 20 + 1)  # plus half squares at both ends
    assert len(squares) == pytest.approx(inside, rel=0.15)


def test_too_many_squares_are_sampled_deterministically(tmp_path):
    with _stained(tmp_path) as slide:
        few, again = (tissue_squares(slide, 8, max_count=40) for _ in range(2))
        more = tissue_squares(slide, 8, max_count=100)
    assert len(few) == 40
    assert (few == again).all()
    assert (more[:40] == few).all()  # a prefix is a sample too
    thirds = np.histogram(few[:, 0], bins=3, range=(TISSUE[0], TISSUE[2]))[0]
    assert thirds.min() >= 5


def test_glass_has_no_squares_and_large_squares_are_limited_to_the_slide(tmp_path):
    with _slide(tmp_path, np.full((300, 300, 3), 245, np.uint8)) as slide:
        assert tissue_squares(slide, 40, max_count=9).shape == (0, 4)
    with _stained(tmp_path) as slide:
        for side in (0, -1, float("nan")):
            with pytest.raises(BadInputError, match="side"):
                tissue_squares(slide, side, max_count=9)
        limited = tissue_squares(slide, 9000, max_count=9)
    assert (limited[:, 2] - limited[:, 0] == 400).all()
