"""Detection of key points by SIFT, ORB, AKAZE or KAZE, masked and spatially even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import UnknownNameError
from ml.keypoints.masks import checked_mask, scope_mask, specular_mask
from ml.keypoints.pixels import equalise, to_grey
from ml.types import ArrayBool, ArrayF32, ImageU8, Keypoints

DETECTOR_NAMES: tuple[str, ...] = ("sift", "orb", "akaze", "kaze")

MIN_CELL_PX = 8.0
"""Smallest cell of spatial selection, as closer key points are nearly equal."""

ORB_SURPLUS, MIN_ORB = 4, 500
"""Factor on, and minimum of, the key points requested from ORB, as its strongest ones are clustered
and the spatial selection needs a choice."""


FILLED_BELOW = 0.5
"""Share of the requested number below which weaker key points are added by a second detection."""


@dataclass(frozen=True, slots=True)
class DetectorConfig:
    """Configuration of key point detection.

    Attributes:
        name: One of ``DETECTOR_NAMES``.
        max_keypoints: Largest number, the strongest of each cell first.
        equalised: Apply CLAHE before detection.
        rim_px: Smallest distance to the rim of an estimated field of view.
        cells: Approximate number of cells of the spatial selection.
        fill_share: Factor on the threshold for the weaker key points added to dark or smooth
            images; 1 adds none. AKAZE and KAZE only.
    """

    name: str = "sift"
    max_keypoints: int = 1000
    equalised: bool = True
    rim_px: int = 8
    cells: int = 200
    fill_share: float = 0.1


def detect_keypoints(
    image: npt.NDArray[Any],
    *,
    config: DetectorConfig = DetectorConfig(),
    mask: npt.NDArray[Any] | None = None,
) -> Keypoints:
    """Detect key points inside the field of view, without highlights.

    Args:
        image: (H, W[, 1|3|4]), any integer or float type; see ``pixels.to_grey``.
        mask: (H, W), allowed area: True, or above 127; None estimates the field of view.
    Returns:
        Keypoints: N <= max_keypoints, possibly 0, in an order in which every prefix is spatially
        even, weaker ones last.
    Raises:
        UnknownNameError: Unknown detector.
        ShapeError: Another shape of the image or the mask.
    """
    if config.name not in DETECTOR_NAMES:
        raise UnknownNameError("detector", config.name, list(DETECTOR_NAMES))
    grey = to_grey(image)
    allowed = _allowed_area(image, grey, mask=mask, rim_px=config.rim_px)
    pixels = equalise(grey) if config.equalised else grey
    shape, cells = grey.shape[:2], config.cells
    keypoints = _run(config, pixels, allowed)
    keypoints = select_even(keypoints, shape=shape, count=config.max_keypoints, cells=cells)
    is_filled = config.name in _THRESHOLDS and config.fill_share < 1
    if not is_filled or len(keypoints) >= FILLED_BELOW * config.max_keypoints:
        return keypoints
    weak = _run(config, pixels, allowed, share=config.fill_share)
    weak = take(weak, weak.response < _THRESHOLDS[config.name])
    count = config.max_keypoints - len(keypoints)
    return _concatenate(keypoints, select_even(weak, shape=shape, count=count, cells=cells))


def _allowed_area(
    image: npt.NDArray[Any], grey: ImageU8, *, mask: npt.NDArray[Any] | None, rim_px: int
) -> ArrayBool:
    """Allowed area (H, W) bool of key points, given or estimated, without highlights."""
    if mask is None:
        inside = scope_mask(grey, margin_px=rim_px)
    else:
        inside = checked_mask(mask, (grey.shape[0], grey.shape[1]))
    pixels = np.asarray(image)
    is_rgb = pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] >= 3
    return inside & ~specular_mask(pixels[:, :, :3] if is_rgb else grey)


def select_even(
    keypoints: Keypoints, *, shape: tuple[int, ...], count: int, cells: int = 200
) -> Keypoints:
    """Order key points by rank within their cell, then by response; return the first ``count``.

    The strongest key points of all cells come before the second of any cell.
    """
    n = len(keypoints)
    if n == 0:
        return keypoints
    cell_px = max(MIN_CELL_PX, float(np.sqrt(shape[0] * shape[1] / max(cells, 1))))
    column = (keypoints.xy[:, 0] / cell_px).astype(np.int64)
    row = (keypoints.xy[:, 1] / cell_px).astype(np.int64)
    cell = row * (int(shape[1] / cell_px) + 2) + column
    order = np.lexsort((keypoints.xy[:, 0], keypoints.xy[:, 1], -keypoints.response, cell))
    starts = np.flatnonzero(np.r_[True, np.diff(cell[order]) != 0])
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n) - np.repeat(starts, np.diff(np.r_[starts, n]))
    chosen = np.lexsort((keypoints.xy[:, 0], keypoints.xy[:, 1], -keypoints.response, rank))[
        : max(count, 0)
    ]
    return take(keypoints, chosen)


def take(keypoints: Keypoints, rows: npt.NDArray[Any]) -> Keypoints:
    """Select key points by indices or a mask."""
    return Keypoints(
        xy=keypoints.xy[rows],
        response=keypoints.response[rows],
        size_px=keypoints.size_px[rows],
        angle_deg=keypoints.angle_deg[rows],
    )


def _concatenate(first: Keypoints, second: Keypoints) -> Keypoints:
    return Keypoints(
        xy=np.concatenate([first.xy, second.xy]),
        response=np.concatenate([first.response, second.response]),
        size_px=np.concatenate([first.size_px, second.size_px]),
        angle_deg=np.concatenate([first.angle_deg, second.angle_deg]),
    )


_THRESHOLDS = {"akaze": 1e-4, "kaze": 1e-4}


def _make_detector(name: str, *, max_keypoints: int, share: float) -> Any:
    """Create a detector of OpenCV with thresholds for the weak texture of endoscopy.

    Defaults of OpenCV are for photographs: 0.04 and 10 for SIFT, 20 for ORB, 0.001 for the others.

    Args:
        share: Factor on the threshold of AKAZE and KAZE.
    """
    if name == "sift":
        return cv2.SIFT.create(nfeatures=0, contrastThreshold=0.01, edgeThreshold=12)
    if name == "orb":
        return cv2.ORB.create(nfeatures=max(ORB_SURPLUS * max_keypoints, MIN_ORB), fastThreshold=5)
    if name == "akaze":
        return cv2.AKAZE.create(threshold=share * _THRESHOLDS[name])
    return cv2.KAZE.create(threshold=share * _THRESHOLDS[name])


def _run(
    config: DetectorConfig, grey: ImageU8, allowed: ArrayBool, *, share: float = 1.0
) -> Keypoints:
    detector = _make_detector(config.name, max_keypoints=config.max_keypoints, share=share)
    raw = detector.detect(grey, None)
    if not raw:
        return _no_keypoints()
    xy = np.array([k.pt for k in raw], np.float32).reshape(-1, 2)
    angle = np.array([k.angle for k in raw], np.float32)
    # KAZE returns 0 and computes angles with descriptors
    has_angle = (angle >= 0) & (config.name != "kaze")
    keypoints = Keypoints(
        xy=xy,
        response=np.array([k.response for k in raw], np.float32),
        size_px=np.array([k.size for k in raw], np.float32),
        angle_deg=np.where(has_angle, angle % 360, np.float32(-1)),
    )
    column = np.clip(np.rint(xy[:, 0]).astype(np.int64), 0, grey.shape[1] - 1)
    row = np.clip(np.rint(xy[:, 1]).astype(np.int64), 0, grey.shape[0] - 1)
    return take(keypoints, allowed[row, column] & np.isfinite(xy).all(axis=1))


def _no_keypoints() -> Keypoints:
    empty: ArrayF32 = np.zeros(0, np.float32)
    return Keypoints(np.zeros((0, 2), np.float32), empty, empty.copy(), empty.copy())
