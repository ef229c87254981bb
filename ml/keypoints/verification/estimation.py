"""Robust estimation of planar motions and the fundamental matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import NotEnoughMatchesError, ShapeError, UnknownNameError
from ml.geometry import normalised
from ml.types import ArrayBool, ArrayF32, ArrayF64, Transform

MODEL_NAMES: tuple[str, ...] = ("similarity", "affine", "homography")
METHODS = {"magsac": cv2.USAC_MAGSAC, "ransac": cv2.RANSAC}
METHOD_NAMES: tuple[str, ...] = tuple(METHODS)

_MIN_MATCHES = {"similarity": 2, "affine": 3, "homography": 4, "fundamental": 8}
"""Matches that determine each model; linearly for a fundamental matrix."""

CONFIDENCE = 0.9999
"""Probability of at least one sample without outliers."""

MAX_ITERATIONS, MAX_FUNDAMENTAL_ITERATIONS = 4000, 5000
"""Largest number of samples, if ``CONFIDENCE`` is not reached earlier."""

REFINE_ITERATIONS = 20
"""Least-squares steps over the inliers of an affine map."""

MIN_W, MIN_DETERMINANT = 1e-9, 1e-6
"""Lower bounds of the last element, and of the determinant, of a proper homography."""

NO_LENGTH = 1e-12
"""Lower bound of the normal of a line in divisions."""


@dataclass(frozen=True, slots=True)
class EpipolarGeometry:
    """A fundamental matrix F, ``x_b^T F x_a = 0``.

    Attributes:
        matrix: (3, 3) float64, of unit Frobenius norm.
        inliers: (N,) bool, inliers of the matches.
    """

    matrix: ArrayF64
    inliers: ArrayBool


def estimate_transform(
    xy_a: ArrayF32,
    xy_b: ArrayF32,
    *,
    model: str = "homography",
    threshold_px: float = 3.0,
    method: str = "magsac",
) -> Transform:
    """Estimate the planar motion between two frames, robustly.

    Homographies by USAC-MAGSAC or RANSAC; affine maps and similarities by RANSAC and least squares
    over the inliers.

    Args:
        xy_a, xy_b: (N, 2) float32, pixels, x right, y down.
        model: One of ``MODEL_NAMES``.
        threshold_px: Largest reprojection error of an inlier, in pixels of b.
        method: One of ``METHOD_NAMES``, for homographies.
    Returns:
        Transform: matrix (3, 3) float64 mapping a to b; inliers (N,) bool.
    Raises:
        NotEnoughMatchesError: Fewer matches or inliers than the model needs.
        UnknownNameError: Unknown model or method.
        ShapeError: Not (N, 2) with equal N, or not finite.
    Source: Barath et al. 2020 (MAGSAC++); Fischler and Bolles 1981 (RANSAC).
    """
    check_matches(xy_a, xy_b, method)
    if model not in MODEL_NAMES:
        raise UnknownNameError("motion model", model, list(MODEL_NAMES))
    needed = _MIN_MATCHES[model]
    if len(xy_a) < needed:
        raise NotEnoughMatchesError(needed=needed, actual=len(xy_a))
    a, b = np.ascontiguousarray(xy_a, np.float64), np.ascontiguousarray(xy_b, np.float64)
    if model == "homography":
        matrix, inlier_mask = _homography(a, b, threshold_px, method)
    else:
        matrix, inlier_mask = _affine(a, b, threshold_px, is_similarity=model == "similarity")
    inliers = (
        np.zeros(len(a), np.bool_) if inlier_mask is None else inlier_mask.ravel().astype(np.bool_)
    )
    if matrix is None or not _is_proper(matrix) or inliers.sum() < needed:
        raise NotEnoughMatchesError(needed=needed, actual=int(inliers.sum()))
    return Transform(normalised(matrix), inliers)


def estimate_fundamental(
    xy_a: ArrayF32, xy_b: ArrayF32, *, threshold_px: float = 1.5, method: str = "magsac"
) -> EpipolarGeometry:
    """Estimate the fundamental matrix between two frames, robustly.

    Args:
        xy_a, xy_b: (N, 2) float32, pixels, x right, y down.
        threshold_px: Largest distance of an inlier from its epipolar line.
        method: One of ``METHOD_NAMES``.
    Raises:
        NotEnoughMatchesError: Fewer than 8 matches or inliers.
        UnknownNameError: Unknown method.
        ShapeError: Not (N, 2) with equal N, or not finite.
    Source: Barath et al. 2020 (MAGSAC++); Fischler and Bolles 1981 (RANSAC).
    """
    check_matches(xy_a, xy_b, method)
    needed = _MIN_MATCHES["fundamental"]
    if len(xy_a) < needed:
        raise NotEnoughMatchesError(needed=needed, actual=len(xy_a))
    a, b = np.ascontiguousarray(xy_a, np.float64), np.ascontiguousarray(xy_b, np.float64)
    try:
        matrix, inlier_mask = cv2.findFundamentalMat(
            a, b, METHODS[method], threshold_px, CONFIDENCE, MAX_FUNDAMENTAL_ITERATIONS
        )
    except cv2.error:  # degenerate samples
        matrix, inlier_mask = None, None
    inliers = (
        np.zeros(len(a), np.bool_) if inlier_mask is None else inlier_mask.ravel().astype(np.bool_)
    )
    if matrix is None or matrix.shape != (3, 3) or inliers.sum() < needed:
        raise NotEnoughMatchesError(needed=needed, actual=int(inliers.sum()))
    return EpipolarGeometry(np.asarray(matrix / np.linalg.norm(matrix), np.float64), inliers)


def symmetric_epipolar_px(
    fundamental: ArrayF64, xy_a: npt.NDArray[Any], xy_b: npt.NDArray[Any]
) -> ArrayF64:
    """Symmetric epipolar distance: distance to the epipolar line, summed over both images.

    Args:
        fundamental: (3, 3) with ``x_b^T F x_a = 0``.
        xy_a, xy_b: (N, 2) pixels.
    Returns:
        (N,) float64 pixels.
    Source: dinov2-adaptation-endoscopic-matching, eq. 16 (one term of the sum).
    """
    ones = np.ones((len(xy_a), 1))
    a, b = np.hstack([xy_a, ones]).astype(np.float64), np.hstack([xy_b, ones]).astype(np.float64)
    line_b, line_a = a @ fundamental.T, b @ fundamental
    product = np.abs((b * line_b).sum(axis=1))
    norm_b = np.maximum(np.hypot(line_b[:, 0], line_b[:, 1]), NO_LENGTH)
    norm_a = np.maximum(np.hypot(line_a[:, 0], line_a[:, 1]), NO_LENGTH)
    distance: ArrayF64 = product / norm_b + product / norm_a
    return distance


def _homography(
    a: ArrayF64, b: ArrayF64, threshold_px: float, method: str
) -> tuple[np.ndarray | None, np.ndarray | None]:
    flag = METHODS[method]
    try:
        return cv2.findHomography(
            a, b, flag, threshold_px, maxIters=MAX_ITERATIONS, confidence=CONFIDENCE
        )
    except cv2.error:  # degenerate samples
        return None, None


def _affine(
    a: ArrayF64, b: ArrayF64, threshold_px: float, *, is_similarity: bool
) -> tuple[np.ndarray | None, np.ndarray | None]:
    estimate = cv2.estimateAffinePartial2D if is_similarity else cv2.estimateAffine2D
    rows, inlier_mask = estimate(
        a,
        b,
        method=cv2.RANSAC,
        ransacReprojThreshold=threshold_px,
        maxIters=MAX_ITERATIONS,
        confidence=CONFIDENCE,
        refineIters=REFINE_ITERATIONS,
    )
    return (None if rows is None else np.vstack([rows, [0.0, 0.0, 1.0]])), inlier_mask


def _is_proper(matrix: np.ndarray) -> bool:
    """Return whether a homography is finite, invertible and preserves orientation."""
    if not np.isfinite(matrix).all() or abs(matrix[2, 2]) < MIN_W:
        return False
    return bool(np.linalg.det(normalised(matrix)) > MIN_DETERMINANT)


def check_matches(xy_a: ArrayF32, xy_b: ArrayF32, method: str) -> None:
    """Check a method and matches.

    Raises:
        UnknownNameError: Unknown method.
        ShapeError: Not (N, 2) with equal N, or not finite.
    """
    if method not in METHOD_NAMES:
        raise UnknownNameError("robust method", method, list(METHOD_NAMES))
    for name, xy in (("xy_a", xy_a), ("xy_b", xy_b)):
        if xy.ndim != 2 or xy.shape[1] != 2 or len(xy) != len(xy_a):
            raise ShapeError(name, expected=f"({len(xy_a)}, 2)", actual=str(xy.shape))
        if not np.isfinite(xy).all():
            raise ShapeError(name, expected="finite pixels", actual="NaN or infinity")
