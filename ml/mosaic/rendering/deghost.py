"""Stage 5, deghost: the colour that most frames show at every spot, on a small canvas.

An instrument that moves over the tissue is in a few of the frames that saw a spot. Where a frame's
hue differs from what the frames together show there, it counts for almost nothing in the blend. Hue
(the shares of red and green in the brightness) is compared, so that a change of exposure is no
difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import cv2
import numpy as np

from ml.mosaic.alignment.canvas import MosaicCanvas
from ml.types import ArrayF32, ArrayF64

SIDE_PX = 384
"""Longer side of the small canvas: an instrument is large, and 24 bins of it take 42 MB."""

BINS, RED_RANGE = 24, (0.2, 0.92)
"""Bins and range of the histogram of the share of red: 0.33 is grey, tissue begins at 0.45."""

RIM_SHARE = 0.03
"""Nearer to the rim than this, blurring mixes the tissue's hue with black."""

HUE_SIGMA, COARSER = 2.0, 2
"""Blur (px) of a frame before it goes into the histogram; and the factor by which one is shrunk,
which blurs as much, before it is compared."""

DARK = 20.0
"""Added to the brightness: the hue of what is dark is noise."""

HUE_TOLERANCE = 0.06
"""Distance of two hues at which a frame's weight has fallen to a third."""

MIN_SHARE = 0.02
"""Not zero: where only frames that disagree saw a spot, it is shown anyway."""


@dataclass(frozen=True, slots=True)
class CommonHue:
    """Most frequent hue at every point of the small canvas.

    Attributes:
        hue: (h, w, 2) float32, shares of red and green.
        downsample: mosaic px per px of it.
    """

    hue: ArrayF32
    downsample: float

    def from_box(self, left: int, top: int) -> ArrayF64:
        """(3, 3): px of a box of the mosaic to px of the small canvas."""
        return _to_small(self.downsample, left, top)

    def share(self, rgb: ArrayF32, left: int, top: int) -> ArrayF32:
        """(h, w) in [MIN_SHARE, 1]: how far pixels, (h, w, 3) of that box, agree with it."""
        height, width = rgb.shape[:2]
        size = (max(1, width // COARSER), max(1, height // COARSER))
        hue = hue_of(np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), np.float32))
        to_box = np.diag([size[0] / width, size[1] / height, 1.0])
        to_box[:2, 2] = 0.5 * to_box.diagonal()[:2] - 0.5
        matrix = self.from_box(left, top) @ np.linalg.inv(to_box)
        common = cv2.warpAffine(
            self.hue,
            matrix[:2],
            size,
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REPLICATE,
        )
        # hues mix along the edge of an object over the tissue
        small = cv2.erode(agreement(hue, np.asarray(common, np.float32)), np.ones((3, 3), np.uint8))
        return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR))


def hue_of(rgb: ArrayF32) -> ArrayF32:
    """(h, w, 2) float32: the shares of red and green in the brightness of (h, w, 3)."""
    total = rgb[:, :, 0] + rgb[:, :, 1] + rgb[:, :, 2] + np.float32(DARK)
    return np.asarray(np.dstack([rgb[:, :, 0] / total, rgb[:, :, 1] / total]), np.float32)


def agreement(hue: ArrayF32, common: ArrayF32) -> ArrayF32:
    """(h, w) float32: 1 if the hues are the same, falling to ``MIN_SHARE``."""
    distance = np.hypot(hue[:, :, 0] - common[:, :, 0], hue[:, :, 1] - common[:, :, 1])
    return np.asarray(np.maximum(np.exp(-((distance / HUE_TOLERANCE) ** 2)), MIN_SHARE), np.float32)


def find_common_hue(
    frames: Iterable[tuple[int, ArrayF32]], feather: ArrayF32, canvas: MosaicCanvas
) -> CommonHue:
    """Find the hue that most of the frames show at every spot.

    A histogram of the share of red at every spot of the small canvas: its fullest bin is the
    hue of most frames, however far off the others are. Memory is that of the histogram.

    Args:
        frames: (position, (H, W, 3) float32) of placed frames; a sample suffices.
        feather: (H, W), 0 outside the view.
    """
    downsample = max(1.0, max(canvas.width_px, canvas.height_px) / SIDE_PX)
    size = (int(np.ceil(canvas.width_px / downsample)), int(np.ceil(canvas.height_px / downsample)))
    total = np.zeros((BINS, size[1], size[0], 3), np.float32)
    is_covered = (feather > RIM_SHARE).astype(np.float32)
    for position, rgb in frames:
        smooth = cv2.GaussianBlur(rgb, (0, 0), max(HUE_SIGMA, 0.4 * downsample))
        planes = np.dstack([hue_of(np.asarray(smooth, np.float32)), is_covered])
        matrix = _to_small(downsample, 0, 0) @ canvas.transforms[position]
        small = cv2.warpPerspective(planes, matrix, size)
        rows, columns = np.nonzero(small[:, :, 2] > 0.99)
        values = small[rows, columns]
        low, high = RED_RANGE
        red_bin = np.clip((values[:, 0] - low) / (high - low) * BINS, 0, BINS - 1).astype(np.int64)
        total[red_bin, rows, columns] += values
    return CommonHue(_mode_hue(total), downsample)


def _mode_hue(total: ArrayF32) -> ArrayF32:
    """(h, w, 2): the mean hue in the fullest three neighbouring bins; 0 if nothing was seen."""
    padded = np.concatenate([total[:1] * 0, total, total[:1] * 0])
    wide = padded[:-2] + padded[1:-1] + padded[2:]
    best = wide[..., 2].argmax(axis=0)
    chosen = np.take_along_axis(wide, best[None, ..., None], axis=0)[0]
    return np.asarray(chosen[..., :2] / np.maximum(chosen[..., 2:], 1e-9), np.float32)


def _to_small(downsample: float, left: int, top: int) -> ArrayF64:
    """(3, 3): px of a box of the mosaic to px of the small canvas."""
    zoom = 1 / downsample
    corner = 0.5 * zoom - 0.5
    return np.array([[zoom, 0, left * zoom + corner], [0, zoom, top * zoom + corner], [0, 0, 1.0]])
