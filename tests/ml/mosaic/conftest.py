"""Sweeps over real vessels with exactly known motion."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import pytest

from ml.imaging.samples import packaged_image


@dataclass(frozen=True)
class Sweep:
    """(N, 200, 200, 3) uint8 frames, and (N, 3, 3) maps from frame to the picture swept."""

    frames: list[np.ndarray]
    truth: dict[int, np.ndarray]


def make_sweep(count: int = 12, side_px: int = 200) -> Sweep:
    """A scope gliding to the right and down, turning slowly."""
    scene = cv2.resize(packaged_image("retina.jpg"), None, fx=0.5, fy=0.5, interpolation=3)
    frames, truth = [], {}
    for i in range(count):
        turn = np.radians(1.2 * i)
        c, s = np.cos(turn), np.sin(turn)
        matrix = np.array([[c, -s, 150 + 11 * i], [s, c, 240 + 4 * i], [0, 0, 1.0]])
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        view = np.asarray(cv2.warpPerspective(scene, matrix, (side_px, side_px), flags=flags))
        disc = np.zeros((side_px, side_px), np.uint8)
        cv2.circle(disc, (side_px // 2, side_px // 2), side_px // 2 - 4, 1, -1)
        frames.append(view * disc[:, :, None])
        truth[i] = matrix
    return Sweep(frames, truth)


@pytest.fixture(scope="session")
def sweep() -> Sweep:
    """Twelve good frames."""
    return make_sweep()
