"""Novel views of a still: back-projection by depth, motion of the camera, projection.

Source: dinov2-adaptation-endoscopic-matching, section III-B, eq. 9-12.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, ShapeError
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, ImageU8

_NEAR = 1e-6
"""Least depth of a point in front of the camera."""

_STEPS = 2
"""Number of Newton steps that refine a source position."""

_FLAT = 0.01
"""Least area ratio of the forward map at which a Newton step is taken."""


@dataclass(frozen=True, slots=True)
class NovelView:
    """A synthesised view and the exact correspondence behind it, both of (H, W).

    Attributes:
        image: (H, W, 3) uint8, the warped view I_w; black where nothing projects.
        xy_t: (H, W, 2) float32, p_gt: each source pixel's place in the view; NaN behind the camera.
        xy_s: (H, W, 2) float32, where each pixel of the view came from; NaN if nothing projects.
        visible: (H, W) bool, source pixels that are seen in the view: inside and not occluded.
    """

    image: ImageU8
    xy_t: ArrayF32
    xy_s: ArrayF32
    visible: ArrayBool

    @property
    def covered(self) -> ArrayBool:
        """(H, W) bool: pixels of the view that something projects to."""
        return np.isfinite(self.xy_s[:, :, 0])


def back_project(depth: ArrayF64, camera: ArrayF64) -> ArrayF64:
    """Back-project pixels to the camera's frame: ``P_s = D_s(p_s) K^-1 p_s``.

    Args:
        depth: (H, W), along the optical axis, any unit.
        camera: (3, 3) K.
    Returns:
        (H, W, 3) float64 in the depth's unit.
    Raises:
        ShapeError: depth is not (H, W), not finite or not positive.
    Source: dinov2-adaptation-endoscopic-matching, eq. 9.
    """
    if depth.ndim != 2 or not np.isfinite(depth).all() or not (depth > 0).all():
        raise ShapeError("depth", expected="(H, W) finite, positive", actual=_array_summary(depth))
    height, width = depth.shape
    v, u = np.mgrid[:height, :width].astype(np.float64)
    rays = np.stack([u, v, np.ones_like(u)], axis=2) @ np.linalg.inv(camera).T
    return np.asarray(depth[:, :, None] * rays, np.float64)


def move(points: ArrayF64, T_t_from_s: ArrayF64) -> ArrayF64:
    """Transform (..., 3) points from the source camera's frame to the target camera's.

    Source: dinov2-adaptation-endoscopic-matching, eq. 10.
    """
    return np.asarray(points @ T_t_from_s[:3, :3].T + T_t_from_s[:3, 3], np.float64)


def project(points: ArrayF64, camera: ArrayF64) -> tuple[ArrayF64, ArrayF64]:
    """Project (..., 3) points to (..., 2) pixels, NaN behind the camera, and (...) depths.

    Source: dinov2-adaptation-endoscopic-matching, eq. 11-12.
    """
    homogeneous = points @ camera.T
    z = points[..., 2]
    in_front = z > _NEAR
    xy = homogeneous[..., :2] / np.where(in_front, homogeneous[..., 2], 1.0)[..., None]
    return np.where(in_front[..., None], xy, np.nan), np.asarray(z, np.float64)


def z_buffer(xy: ArrayF64, z: ArrayF64, shape: tuple[int, int]) -> ArrayI64:
    """Find the visible point of each pixel: the nearest within one pixel along each axis.

    A point covers the four pixels around it, so that a surface magnified less than twice has no
    cracks.

    Args:
        xy: (N, 2) pixels, NaN for none.
        z: (N,) depth.
    Returns:
        (H, W) int64: row of ``xy``, -1 without a point.
    Source: dinov2-adaptation-endoscopic-matching, section III-B ("z-buffering").
    """
    height, width = shape
    order = np.argsort(-z, kind="stable")  # the nearest is written last
    order = order[np.isfinite(xy[order]).all(axis=1)]
    low = np.floor(np.clip(xy[order], -2.0, max(shape) + 2.0)).astype(np.int64)
    on_grid = xy[order] == low  # on the grid: no second pixel along that axis
    row_of_pixel = np.full(height * width, -1, np.int64)
    nearest = np.full(height * width, np.inf)
    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
        x, y = low[:, 0] + dx, low[:, 1] + dy
        inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
        inside &= ~((dx == 1) & on_grid[:, 0]) & ~((dy == 1) & on_grid[:, 1])
        pixel, rows = (y * width + x)[inside], order[inside]
        splat = np.full(height * width, -1, np.int64)
        splat[pixel] = rows
        depth = np.where(splat >= 0, z[splat], np.inf)
        closer = depth < nearest
        row_of_pixel[closer], nearest[closer] = splat[closer], depth[closer]
    return row_of_pixel.reshape(height, width)


def synthesise_view(
    image: ImageU8,
    depth: ArrayF64,
    *,
    camera: ArrayF64,
    T_t_from_s: ArrayF64,
    tolerance_px: float = 1.5,
) -> NovelView:
    """Synthesise the view of a moved camera on a still of known depth.

    Source positions of the z-buffer are refined by two Newton steps, and colours sampled
    bilinearly; the paper copies pixels.

    Args:
        image: (H, W, 3) uint8.
        depth: (H, W).
        camera: (3, 3).
        T_t_from_s: (4, 4) rigid.
        tolerance_px: largest error of the round trip of a visible source pixel.
    Raises:
        ShapeError: the sizes differ, or the depth is not positive.
    Source: dinov2-adaptation-endoscopic-matching, eq. 9-12.
    """
    if image.shape[:2] != depth.shape or image.ndim != 3:
        raise ShapeError("depth", expected=f"{image.shape[:2]}", actual=str(depth.shape))
    points = move(back_project(depth, camera), T_t_from_s)
    xy, z = project(points, camera)
    row_of_pixel = z_buffer(xy.reshape(-1, 2), z.ravel(), depth.shape)
    xy_t = xy.astype(np.float32)
    xy_s = _source_positions(row_of_pixel, xy_t)
    warped = cv2.remap(
        image, xy_s[:, :, 0], xy_s[:, :, 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    warped[~np.isfinite(xy_s[:, :, 0])] = 0
    visible = _round_trip_px(xy_t, xy_s) < tolerance_px
    return NovelView(np.asarray(warped, np.uint8), xy_t, xy_s, visible)


def _source_positions(row_of_pixel: ArrayI64, xy_t: ArrayF32) -> ArrayF32:
    """Position in the source of each pixel of the view: inverse of ``xy_t`` by Newton steps.

    Args:
        row_of_pixel: (H, W) index of the source pixel drawn there, the start; -1 for none.
        xy_t: (H, W, 2) position in the view of each source pixel.
    Returns:
        (H, W, 2) pixels; the start where the steps do not converge, NaN where nothing was drawn.
    """
    height, width = row_of_pixel.shape
    covered = row_of_pixel >= 0
    start = np.stack([row_of_pixel % width, row_of_pixel // width], axis=2).astype(np.float32)
    v, u = np.mgrid[:height, :width].astype(np.float32)
    target = np.stack([u, v], axis=2)
    inverse = _inverse_slope(xy_t)[start[:, :, 1].astype(np.int64), start[:, :, 0].astype(np.int64)]
    position = start.copy()
    for _ in range(_STEPS):
        error = np.nan_to_num(target - _sample(xy_t, position))
        position = position + np.einsum("hwij,hwj->hwi", inverse, error)
        position = np.clip(position, start - 2, start + 2).astype(np.float32)
    error_px = np.linalg.norm(_sample(xy_t, position) - target, axis=2)
    exact = np.isfinite(error_px) & (error_px < 0.25)  # excludes depth discontinuities
    result = np.where(exact[:, :, None], position, start)
    result[~covered] = np.nan
    return np.asarray(result, np.float32)


def _inverse_slope(xy_t: ArrayF32) -> ArrayF32:
    """(H, W, 2, 2) inverse Jacobian of the forward map, or the identity."""
    down, right = np.gradient(xy_t, axis=(0, 1))
    slope = np.stack([right, down], axis=3)
    determinant = slope[..., 0, 0] * slope[..., 1, 1] - slope[..., 0, 1] * slope[..., 1, 0]
    adjugate = np.stack(
        [slope[..., 1, 1], -slope[..., 0, 1], -slope[..., 1, 0], slope[..., 0, 0]], axis=2
    ).reshape(slope.shape)
    good = np.isfinite(slope).all(axis=(2, 3)) & (np.abs(determinant) > _FLAT)
    inverse = adjugate / np.where(good, determinant, 1.0)[..., None, None]
    return np.where(good[..., None, None], inverse, np.eye(2)).astype(np.float32)


def _round_trip_px(xy_t: ArrayF32, xy_s: ArrayF32) -> ArrayF32:
    """(H, W) error of the round trip of each source pixel."""
    height, width = xy_t.shape[:2]
    v, u = np.mgrid[:height, :width].astype(np.float32)
    xy_grid = np.rint(np.nan_to_num(xy_t, nan=-9.0)).clip(-9, 1 << 20).astype(np.int64)
    inside = (xy_grid >= 0).all(axis=2) & (xy_grid[:, :, 0] < width) & (xy_grid[:, :, 1] < height)
    back = xy_s[xy_grid[:, :, 1] * inside, xy_grid[:, :, 0] * inside]
    distances = np.hypot(back[:, :, 0] - u, back[:, :, 1] - v)
    return np.asarray(np.where(inside & np.isfinite(distances), distances, np.inf), np.float32)


def _sample(field: ArrayF32, position: ArrayF32) -> ArrayF32:
    """Sample an (H, W, 2) field bilinearly at (H, W, 2) positions; the border is repeated."""
    x = np.ascontiguousarray(position[:, :, 0])
    y = np.ascontiguousarray(position[:, :, 1])
    values = cv2.remap(field, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(values, np.float32)


@dataclass(frozen=True, slots=True)
class MotionConfig:
    """Range of the camera motions about the middle of the scene."""

    tilt_deg: float = 25.0  # largest turn about each of the image axes
    roll_deg: float = 40.0  # largest turn about the optical axis
    shift: float = 0.12  # largest lateral shift, share of the field's width
    zoom: float = 0.35  # largest log scale by moving along the optical axis
    focal: tuple[float, float] = (0.8, 1.6)  # focal length, share of the width
    depth_scale: tuple[float, float] = (0.7, 1.4)  # of the depth's relief, which has no unit


def random_camera(rng: np.random.Generator, size_px: int, config: MotionConfig) -> ArrayF64:
    """Draw (3, 3) intrinsics of a square image with the principal point in its middle."""
    focal = rng.uniform(*config.focal) * size_px
    middle = (size_px - 1) / 2
    return np.array([[focal, 0, middle], [0, focal, middle], [0, 0, 1.0]])


def random_motion(
    rng: np.random.Generator, *, distance: float, field: float, config: MotionConfig
) -> ArrayF64:
    """Draw a rigid motion (4, 4) of the camera about the scene point in the middle.

    Args:
        distance: depth of that point.
        field: width of what is seen there, same unit.
    Returns:
        T_t_from_s.
    Raises:
        BadInputError: a distance or field that is not positive.
    Source: dinov2-adaptation-endoscopic-matching, section III-B: drawn within a realistic range.
    """
    if not distance > 0 or not field > 0:
        raise BadInputError(f"distance, field: expected above 0, got {distance:g}, {field:g}")
    angles = np.radians(rng.uniform(-1, 1, 3) * (config.tilt_deg, config.tilt_deg, config.roll_deg))
    rotation = np.eye(3)
    for axis, angle in zip(np.eye(3), angles, strict=True):
        rotation = cv2.Rodrigues(axis * angle)[0] @ rotation
    centre = np.array([0, 0, distance])
    along = distance * (np.exp(-rng.uniform(-1, 1) * config.zoom) - 1)
    lateral = rng.uniform(-1, 1, 2) * config.shift * field
    matrix = np.eye(4)
    matrix[:3, :3] = rotation
    matrix[:3, 3] = centre - rotation @ centre + (*lateral, along)
    return matrix


def _array_summary(array: npt.NDArray[np.float64]) -> str:
    if array.ndim != 2:
        return str(array.shape)
    return f"{array.shape}, {np.nanmin(array):g} to {np.nanmax(array):g}"
