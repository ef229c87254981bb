"""Detect key points: SIFT, ORB, AKAZE, KAZE on equalised grey, masked and spatially even."""

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
"""Key points closer than this show much the same: smaller cells would not spread them."""

ORB_SURPLUS, MIN_ORB = 4, 500
"""ORB keeps its strongest, which crowd together: this many times more are requested, and at least
this many, for the selection to choose from."""


@dataclass(frozen=True, slots=True)
class DetectorConfig:
    """How key points are found.

    Attributes:
        name: one of ``DETECTOR_NAMES``.
        max_keypoints: at most this many, the strongest of each cell first.
        equalised: CLAHE before detection.
        rim_px: key points closer than this to the scope's rim are dropped, where it is estimated.
        cells: the selection is even over about this many cells of the image.
    """

    name: str = "sift"
    max_keypoints: int = 1000
    equalised: bool = True
    rim_px: int = 8
    cells: int = 200


def detect_keypoints(
    image: npt.NDArray[Any],
    *,
    config: DetectorConfig = DetectorConfig(),
    mask: npt.NDArray[Any] | None = None,
) -> Keypoints:
    """Detect key points inside the scope's field of view and off its highlights.

    Args:
        image: (H, W[, 1|3|4]), any integer or float type; see ``pixels.to_grey``.
        mask: (H, W) bool, or above 127, where key points may lie; None estimates the scope's
            field of view from the image.
    Returns:
        Keypoints: N <= max_keypoints, ordered so that every prefix is spatially even; N may be 0.
    Raises:
        UnknownNameError: no such detector.
        ShapeError: the image or the mask has another shape than documented.
    """
    _check_name(config.name)
    grey = to_grey(image)
    allowed = _allowed(image, grey, mask=mask, rim_px=config.rim_px)
    found = _run(config, equalise(grey) if config.equalised else grey, allowed)
    return select_even(found, shape=grey.shape[:2], count=config.max_keypoints, cells=config.cells)


def _allowed(
    image: npt.NDArray[Any], grey: ImageU8, *, mask: npt.NDArray[Any] | None, rim_px: int
) -> ArrayBool:
    """(H, W) bool: where key points may lie, given or estimated, without highlights."""
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
    """Order by rank within the cell of each, then by response; keep the first ``count``.

    So every cell gives its strongest key point before any gives its second.
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
    """The key points of the given rows (indices or a mask)."""
    return Keypoints(
        xy=keypoints.xy[rows],
        response=keypoints.response[rows],
        size_px=keypoints.size_px[rows],
        angle_deg=keypoints.angle_deg[rows],
    )


def _make_detector(name: str, *, max_keypoints: int) -> Any:
    """The OpenCV feature object behind a name, set for the weak texture of endoscopy.

    OpenCV's own thresholds suit photographs: 0.04 and 10 for SIFT, 20 for ORB, 0.001 for the rest.
    """
    if name == "sift":
        return cv2.SIFT.create(nfeatures=0, contrastThreshold=0.01, edgeThreshold=12)
    if name == "orb":
        return cv2.ORB.create(nfeatures=max(ORB_SURPLUS * max_keypoints, MIN_ORB), fastThreshold=5)
    if name == "akaze":
        return cv2.AKAZE.create(threshold=1e-4)
    return cv2.KAZE.create(threshold=1e-4)


def _run(config: DetectorConfig, grey: ImageU8, allowed: ArrayBool) -> Keypoints:
    detector = _make_detector(config.name, max_keypoints=config.max_keypoints)
    raw = detector.detect(grey, None)
    if not raw:
        return _no_keypoints()
    xy = np.array([k.pt for k in raw], np.float32).reshape(-1, 2)
    angle = np.array([k.angle for k in raw], np.float32)
    known = (angle >= 0) & (config.name != "kaze")  # which leaves 0 and turns when it describes
    found = Keypoints(
        xy=xy,
        response=np.array([k.response for k in raw], np.float32),
        size_px=np.array([k.size for k in raw], np.float32),
        angle_deg=np.where(known, angle % 360, np.float32(-1)),
    )
    column = np.clip(np.rint(xy[:, 0]).astype(np.int64), 0, grey.shape[1] - 1)
    row = np.clip(np.rint(xy[:, 1]).astype(np.int64), 0, grey.shape[0] - 1)
    return take(found, allowed[row, column] & np.isfinite(xy).all(axis=1))


def _no_keypoints() -> Keypoints:
    nothing: ArrayF32 = np.zeros(0, np.float32)
    return Keypoints(np.zeros((0, 2), np.float32), nothing, nothing.copy(), nothing.copy())


def _check_name(name: str) -> None:
    if name not in DETECTOR_NAMES:
        raise UnknownNameError("detector", name, list(DETECTOR_NAMES))
