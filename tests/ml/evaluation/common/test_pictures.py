"""Pictures of matches."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from ml.evaluation.common.pictures import (
    GAP_PX,
    MAX_WIDTH_PX,
    RIGHT,
    WRONG,
    draw_pair,
    write_picture,
)
from ml.types import Matches


def _matches(count: int) -> Matches:
    xy = np.stack([np.full(count, 20.0), np.linspace(10, 90, count)], axis=1).astype(np.float32)
    return Matches(xy, xy, np.ones(count, np.float32))


def test_correct_matches_are_green_and_wrong_ones_red(tmp_path: Path) -> None:
    grey = np.full((100, 120, 3), 90, np.uint8)
    sheet = draw_pair(grey, grey, _matches(2), np.array([True, False]), title="orb")
    title = len(sheet) - 100
    middle = 120 + GAP_PX // 2
    for y, colour in ((10, RIGHT), (90, WRONG)):  # antialiased, so nearly
        assert np.abs(sheet[title + y, middle].astype(int) - colour).max() < 40
    assert tuple(sheet[title + 50, middle]) == (255, 255, 255)
    write_picture(tmp_path / "new" / "x.png", sheet)
    assert cv2.imread(str(tmp_path / "new" / "x.png")).shape == sheet.shape


def test_large_images_of_two_sizes_without_matches_are_drawn() -> None:
    a, b = np.zeros((900, 1500, 3), np.uint8), np.zeros((300, 2000, 3), np.uint8)
    sheet = draw_pair(a, b, _matches(0), np.zeros(0, bool), title="none")
    assert sheet.shape[1] == MAX_WIDTH_PX
