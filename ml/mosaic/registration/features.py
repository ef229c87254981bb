"""Key points of a frame, and links between two frames by their key points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.errors import NotEnoughMatchesError
from ml.keypoints.descriptors.registry import Descriptor
from ml.keypoints.detect import DetectorConfig, detect_keypoints, select_even
from ml.keypoints.match import match_mutual
from ml.keypoints.verification.estimation import estimate_transform
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.views import FrameView, log_gain
from ml.mosaic.registration.links import Link, point_info
from ml.types import ArrayBool, ArrayF32, ArrayF64, Keypoints

LINK_POINTS = 60
"""Enough points for a pair: if spread evenly, more add cost and no stability."""

STATIC_PX = 0.5
"""Largest motion of a static point, px: the detector's own scatter."""


@dataclass(frozen=True, slots=True)
class FrameFeatures:
    """A frame's key points, (N, D) float32 ``rows`` that are compared, and its view."""

    view: FrameView
    keypoints: Keypoints
    rows: ArrayF32


def describe_view(view: FrameView, descriptor: Descriptor, *, max_keypoints: int) -> FrameFeatures:
    """Detect and describe key points of a view, whose fixed pattern is already removed."""
    detector = DetectorConfig(name=descriptor.detector, max_keypoints=max_keypoints)
    keypoints = detect_keypoints(view.grey, config=detector, mask=view.mask)
    return FrameFeatures(view, keypoints, descriptor.describe_keypoints(view.grey, keypoints))


def link_features(
    a: FrameFeatures, b: FrameFeatures, *, descriptor: Descriptor, model: str, config: MosaicConfig
) -> Link | None:
    """Match two frames; None if too few points agree on a plausible motion."""
    pairs, score = match_mutual(a.rows, b.rows, ratio=descriptor.ratio)
    xy_a, xy_b = a.keypoints.xy[pairs[:, 0]], b.keypoints.xy[pairs[:, 1]]
    moving = _moving(xy_a, xy_b)
    score, xy_a, xy_b = score[moving], xy_a[moving], xy_b[moving]
    # OpenCV fits no robust translation: a similarity holds one
    fitted = "similarity" if model == "translation" else model
    try:
        estimate = estimate_transform(xy_a, xy_b, model=fitted, threshold_px=config.threshold_px)
    except NotEnoughMatchesError:
        return None
    inliers = int(estimate.inliers.sum())
    required = max(config.min_inliers, config.min_inlier_share * len(xy_a))
    if inliers < required or not is_plausible(estimate.matrix, xy_a[estimate.inliers]):
        return None
    keep = _thin(xy_a, estimate.inliers, score)
    return Link(
        a.view.position,
        b.view.position,
        xy_a[keep],
        xy_b[keep],
        estimate.matrix,
        inliers,
        log_gain(a.view, b.view, xy_a[keep], xy_b[keep]),
        point_info(len(keep)),
    )


def is_plausible(matrix: ArrayF64, xy: ArrayF32) -> bool:
    """Return whether a motion is plausible between neighbouring frames.

    It may halve or double the size, with little shear.
    """
    centre = xy.mean(axis=0).astype(np.float64)
    w = matrix[2] @ np.array([*centre, 1.0])
    if w <= 0.2 or w >= 5:
        return False
    mapped = (matrix @ np.array([*centre, 1.0]))[:2] / w
    jacobian = (matrix[:2, :2] - np.outer(mapped, matrix[2, :2])) / w
    largest, smallest = np.linalg.svd(jacobian, compute_uv=False)
    turned = float(np.linalg.det(jacobian)) > 0
    return bool(turned and smallest > 0.5 and largest < 2.0 and largest / smallest < 1.6)


def _moving(xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayBool:
    """(N,) bool: False for static points if most others move: these are dirt on the optics."""
    shift = np.hypot(*(xy_a - xy_b).T)
    static = shift < STATIC_PX
    moving = shift[~static]
    if len(moving) >= 20 and len(moving) > static.sum() and np.median(moving) > 4 * STATIC_PX:
        return np.asarray(~static)
    return np.ones(len(shift), np.bool_)


def _thin(xy: ArrayF32, inliers: ArrayBool, score: ArrayF32) -> np.ndarray:
    """Indices of at most LINK_POINTS inliers, spread evenly over the frame."""
    rows = np.flatnonzero(inliers)
    points = Keypoints(xy[rows], score[rows], rows.astype(np.float32), score[rows])
    extent = tuple((xy.max(axis=0) + 1).astype(int)[::-1].tolist())
    selection = select_even(points, shape=extent, count=LINK_POINTS, cells=LINK_POINTS)
    return np.sort(selection.size_px.astype(np.int64))
