"""Faces, and frames outside the body."""

from __future__ import annotations

import numpy as np
import pytest

from ml.imaging.phi_detection.faces import face_boxes
from ml.imaging.phi_detection.outside_body import outside_frames, red_share
from tests.ml.imaging.phi_detection.support import named, tissue


def test_a_face_is_found_at_its_position() -> None:
    data = pytest.importorskip("skimage.data")
    boxes = face_boxes(data.astronaut())
    assert len(boxes) == 1
    assert (boxes[0].x + boxes[0].width / 2) * 512 == pytest.approx(224, abs=25)
    assert face_boxes(data.coffee()) == []


def test_tissue_and_tiny_pictures_have_no_face() -> None:
    assert face_boxes(named(tissue())) == []
    assert face_boxes(np.zeros((4, 900, 3), np.uint8)) == []


def test_a_grey_frame_among_red_ones_is_outside() -> None:
    grey = np.full((90, 160, 3), 120, np.uint8)
    assert outside_frames([*(tissue(seed=seed) for seed in range(5)), grey]) == [5]


def test_a_video_that_is_not_red_and_dark_frames_are_not_judged() -> None:
    grey, dark = np.full((90, 160, 3), 120, np.uint8), np.zeros((90, 160, 3), np.uint8)
    assert outside_frames([grey] * 5 + [tissue()]) == []
    assert outside_frames([tissue()] * 5 + [dark]) == []
    assert outside_frames([tissue(), grey]) == [], "too few to compare with"
    assert red_share(dark) is None
    assert red_share(tissue()) == pytest.approx(1.0, abs=0.05)
