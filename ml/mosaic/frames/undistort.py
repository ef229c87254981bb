"""Removal of a known camera's distortion from frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError
from ml.mosaic.frames.sources import FrameSource, SourceFrame
from ml.types import ArrayF32, ImageU8

COUNTS = (4, 8, 9)
"""fx, fy, cx, cy; then k1, k2, p1, p2; then k3: as OpenCV names and orders them."""


class UndistortedSource:
    """A source whose frames are warped to what a camera without distortion would show.

    The camera matrix stays, so that the middle of the view keeps its scale; from here on "frame
    px" are corrected ones.
    """

    def __init__(self, source: FrameSource, distortion: tuple[float, ...]) -> None:
        if len(distortion) not in COUNTS:
            raise BadInputError(f"distortion: expected {COUNTS} numbers, got {len(distortion)}")
        fx, fy, cx, cy = distortion[:4]
        self._matrix = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]])
        self._terms = np.array(distortion[4:] or (0.0,) * 4)
        self._source, self.count = source, source.count
        self._maps: dict[tuple[int, int], tuple[ArrayF32, ArrayF32]] = {}

    def frames(self, first: int = 0) -> Iterator[SourceFrame]:
        """Yield every frame, corrected."""
        for frame in self._source.frames(first):
            yield frame if frame.rgb is None else replace(frame, rgb=self._correct(frame.rgb))

    def undistorted_mask(self, mask: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Warp a mask of the uncorrected frames, (H, W), to the corrected ones."""
        plane = np.asarray(mask).astype(np.uint8)
        return cv2.remap(plane, *self._map(plane), cv2.INTER_NEAREST).astype(mask.dtype)

    def _correct(self, rgb: ImageU8) -> ImageU8:
        return np.asarray(cv2.remap(rgb, *self._map(rgb), cv2.INTER_LINEAR), np.uint8)

    def _map(self, pixels: npt.NDArray[Any]) -> tuple[ArrayF32, ArrayF32]:
        size = (pixels.shape[1], pixels.shape[0])
        if size not in self._maps:
            x, y = cv2.initUndistortRectifyMap(
                self._matrix, self._terms, None, self._matrix, size, cv2.CV_32FC1
            )
            self._maps[size] = (np.asarray(x, np.float32), np.asarray(y, np.float32))
        return self._maps[size]
