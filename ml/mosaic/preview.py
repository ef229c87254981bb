"""Growing preview: a small picture of the mosaic so far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from ml.files import write_bytes
from ml.geometry import transform_points
from ml.mosaic.frames.views import FrameView
from ml.types import ArrayF32, ArrayF64

PREVIEW_NAME = "growing.jpg"
REDRAW_KEYFRAMES, MAX_KEYFRAMES = 12, 240
"""Keyframes between two drawings, and the most that are held: at 120 px some 20 MB."""

SIDE_PX = 900
"""Longest side of the picture: it is shown small, and sent often."""


class GrowingPreview:
    """Pastes small keyframes by their latest transforms; at most ``MAX_KEYFRAMES`` are held."""

    def __init__(self, folder: Path, show: Callable[[Path], None] | None) -> None:
        self._path, self._show = folder / PREVIEW_NAME, show
        self._small: dict[int, tuple[ArrayF32, int]] = {}
        self._count, self._step = 0, 1

    def add(self, view: FrameView, transforms: dict[int, ArrayF64]) -> None:
        """Take a keyframe; ``transforms`` maps keyframes' working px to one plane."""
        if self._show is None:
            return
        if self._count % self._step == 0:
            self._small[view.position] = (view.colour, max(view.grey.shape))
            if len(self._small) > MAX_KEYFRAMES:
                self._small = dict(list(self._small.items())[::2])
                self._step *= 2
        self._count += 1
        if self._count % REDRAW_KEYFRAMES == 0:
            self._draw(transforms)

    def show_aligned(self, transforms: dict[int, ArrayF64]) -> None:
        """Draw a component with its optimised transforms."""
        if self._show is not None:
            self._draw(transforms)

    def _draw(self, transforms: dict[int, ArrayF64]) -> None:
        positions = [p for p in self._small if p in transforms]
        if not positions or self._show is None:
            return
        boxes = []
        for p in positions:
            colour, side = self._small[p]
            size = np.array([colour.shape[1], colour.shape[0]]) * side / max(colour.shape)
            corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]) * size
            boxes.append(transform_points(transforms[p], corners))
        low, high = np.min(boxes, axis=(0, 1)), np.max(boxes, axis=(0, 1))
        zoom = min(1.0, SIDE_PX / max(float((high - low).max()), 1.0))
        width, height = (max(1, int(np.ceil(v * zoom))) for v in high - low)
        plane = np.zeros((height, width, 3), np.uint8)
        to_plane = np.array([[zoom, 0, -low[0] * zoom], [0, zoom, -low[1] * zoom], [0, 0, 1.0]])
        for p in positions:
            self._paste(plane, p, to_plane @ transforms[p])
        bgr = cv2.cvtColor(plane, cv2.COLOR_RGB2BGR)
        _, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, 80])
        write_bytes(self._path, data.tobytes())
        self._show(self._path)

    def _paste(self, plane: np.ndarray, position: int, matrix: ArrayF64) -> None:
        colour, side = self._small[position]
        up = np.diag([side / max(colour.shape), side / max(colour.shape), 1.0])
        pixels = np.clip(np.exp(colour) - 4, 0, 255).astype(np.uint8)
        size = (plane.shape[1], plane.shape[0])
        warped = cv2.warpPerspective(pixels, matrix @ up, size)
        visible = warped.max(axis=2) > 20
        plane[visible] = warped[visible]
