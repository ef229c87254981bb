"""Outline proposals for a gland, a tumour nest or a polyp from one click inside it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from shapely import Point, Polygon, box

from ml.errors import BadInputError, EmptyRegionError, NoTissueError, ShapeError, UnknownNameError
from ml.imaging.tissue.glass import pixel_haze
from ml.segmentation.paths import closed_paths
from ml.segmentation.rays import (
    HAEMATOXYLIN,
    LIGHTNESS,
    SIGNALS,
    RayOrigin,
    Rays,
    cast_rays,
    darkness,
)
from ml.types import ArrayF32, ArrayF64, ImageU8

MIN_PX = 32
"""Smallest side of an image, px."""
_MIN_DROP = 5e-4
"""Smallest standard deviation of the gradient along rays: ten times that of empty glass."""
_MAX_STRETCH = 3.0  # more elongated glands bend and are rarely star-shaped
_DIRECTIONS = 360  # in which tissue is searched around a point on glass
_MIN_ENCLOSED = 0.5  # share of directions in which tissue surrounds a lumen; of glass, less
_SPACING_PX = 4.0  # between points on a ring whose covariance is computed


@dataclass(frozen=True, slots=True)
class OutlineConfig:
    """Configuration of outline proposals. Lengths are relative to the longer side of the image."""

    signal: str = HAEMATOXYLIN  # for stained tissue; "lightness" for endoscopy
    work_px: int = 640  # longer side of the image that is searched
    directions: int = 128  # vertices of a ring before simplification
    radii: int = 150  # samples in each direction
    max_radius: float = 0.5
    min_radius: float = 0.015
    sigma: float = 0.0065  # smoothing: half a layer of nuclei if a gland fills a quarter
    sigma_radii: float = 1.5  # smoothing along rays, in samples
    penalty: float = 0.4  # of boundaries passed before the ring, for the likely ring
    penalty_steps: int = 3  # rings to either side of it; each step doubles or halves ``penalty``
    max_step: int = 5  # largest difference in samples between neighbouring directions
    step_cost: float = 0.1  # of each sample of difference, in standard deviations of the gradient
    border_gradient: float = 1.0  # of samples outside the image, in standard deviations
    refinements: int = 2  # searches from the centre of the last result, with its elongation
    penalty_scale: float = 10.0  # divides the sum of passed gradients
    margins: tuple[float, ...] = (0.06, 0.12)  # of the radius, beyond the tightest and widest ring
    simplify_px: float = 0.75  # in the searched image


@dataclass(frozen=True, slots=True)
class Outline:
    """Nested rings around a click.

    Attributes:
        rings: At least one, tightest first; (N, 2) float64 each, pixels of the image, not closed.
        likely: Index of the ring to show first.
    """

    rings: tuple[ArrayF64, ...]
    likely: int


def propose_outline(
    image: ImageU8, xy: tuple[float, float], *, config: OutlineConfig = OutlineConfig()
) -> Outline:
    """Propose outlines of the structure around a point, at transitions from dark to light.

    A ring is the closed path of minimum cost around the point. A strong decrease of darkness (the
    outer edge of the layer of nuclei around a gland) lowers the cost; each decrease that a ray has
    already passed raises it. The weight of this penalty decides between tighter and wider rings.
    The search is repeated up to ``refinements`` times from the centre of the last result, so that
    the position of the click has little influence. Results are star-shaped around the last centre.
    On a stained section, a point on glass has no outline unless tissue surrounds it, as it does a
    lumen.

    Args:
        image: (H, W, 3) uint8 RGB; the structure fills between a twentieth and nearly all of it.
        xy: The point, pixels of the image, x right, y down.
    Raises:
        ShapeError: Not (H, W, 3) uint8, or a side shorter than ``MIN_PX``.
        BadInputError: The point is outside the image.
        NoTissueError: The point is on clear or tinted glass.
        EmptyRegionError: No boundary around the point.
        UnknownNameError: No such signal.
    Source: closed contours by dynamic programming in polar coordinates; departs from it by the
        penalty, the rings of several penalties and the repeated search.
    """
    _check(image, xy, config)
    height, width = image.shape[:2]
    scale = min(1.0, config.work_px / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA) if scale < 1 else image
    scale_xy = np.array([size[0] / width, size[1] / height])
    side = max(size)
    dark = darkness(np.asarray(small, np.uint8), config.signal, config.sigma * side)
    radius = np.linspace(config.min_radius, config.max_radius, config.radii) * side
    point = (float(xy[0] * scale_xy[0]), float(xy[1] * scale_xy[1]))
    if config.signal == HAEMATOXYLIN and _is_on_glass(np.asarray(small, np.uint8), point):
        raise NoTissueError("there is no tissue at this point")
    rings, likely = _rings(dark, RayOrigin(point, np.eye(2)), radius, config)
    for _ in range(config.refinements):
        origin = _fit_origin(rings[likely])
        if not rings[likely].contains(Point(origin.centre)):
            break
        refined, refined_likely = _rings(dark, origin, radius, config)
        if not refined[refined_likely].contains(Point(point)):
            break
        rings, likely = refined, refined_likely
    tighter, wider = _margins(rings, Point(point), config.margins)
    rings, likely = tighter + rings + wider, likely + len(tighter)
    bounds = box(0, 0, *size)
    clipped = [_clip(ring, bounds, point, config.simplify_px) for ring in rings]
    return Outline(
        tuple(np.asarray(ring.exterior.coords)[:-1] / scale_xy for ring in clipped), likely
    )


def _check(image: ImageU8, xy: tuple[float, float], config: OutlineConfig) -> None:
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        actual = f"{image.shape} {image.dtype}"
        raise ShapeError("image", expected="(H, W, 3) uint8", actual=actual)
    height, width = image.shape[:2]
    if min(height, width) < MIN_PX:
        sides = f"sides of at least {MIN_PX} px"
        raise ShapeError("image", expected=sides, actual=f"{width} x {height}")
    if not (0 <= xy[0] <= width and 0 <= xy[1] <= height):
        raise BadInputError(f"the point {xy} is outside the image of {width} x {height} px")
    if config.signal not in SIGNALS:
        raise UnknownNameError("signal", config.signal, list(SIGNALS))


def _is_on_glass(image: ImageU8, point: tuple[float, float]) -> bool:
    """True for a point on glass from which most directions leave the image without tissue."""
    height, width = image.shape[:2]
    tissue = (~pixel_haze(image)).astype(np.uint8)
    if tissue[min(int(point[1]), height - 1), min(int(point[0]), width - 1)]:
        return False
    flags = cv2.WARP_FILL_OUTLIERS | cv2.INTER_NEAREST
    reach = float(np.hypot(height, width))
    polar = cv2.warpPolar(tissue, (round(reach), _DIRECTIONS), point, reach, flags)
    return bool(polar.any(axis=1).mean() < _MIN_ENCLOSED)


def _fit_origin(ring: Polygon) -> RayOrigin:
    """Centroid of a ring, and its elongation by the covariance of its points."""
    points = np.asarray(ring.segmentize(_SPACING_PX).exterior.coords)[:-1]
    values, axes = np.linalg.eigh(np.cov(points.T))
    stretch = np.sqrt(np.maximum(values, values.max() / _MAX_STRETCH**2))
    stretch /= np.sqrt(stretch.prod())
    return RayOrigin((ring.centroid.x, ring.centroid.y), axes @ np.diag(stretch) @ axes.T)


def _rings(
    dark: ArrayF32, origin: RayOrigin, radius: ArrayF64, config: OutlineConfig
) -> tuple[list[Polygon], int]:
    """Distinct rings, tightest first, and the index of the likely one."""
    rays = cast_rays(
        dark,
        origin,
        directions=config.directions,
        radius=radius,
        sigma=config.sigma_radii,
    )
    steps = np.arange(config.penalty_steps, -config.penalty_steps - 1, -1, dtype=np.float64)
    penalties: ArrayF64 = config.penalty * np.exp2(steps)
    paths = closed_paths(
        _costs(rays, penalties, config), max_step=config.max_step, step_cost=config.step_cost
    )
    rings: list[Polygon] = []
    likely, previous = 0, None
    for level, path in enumerate(paths):
        if previous is None or np.abs(path - previous).mean() >= 1:
            rings.append(Polygon(rays.points(radius[path])))
            previous = path
        if level == config.penalty_steps:
            likely = len(rings) - 1
    return rings, likely


def _costs(rays: Rays, penalties: ArrayF64, config: OutlineConfig) -> ArrayF32:
    drop = np.abs(rays.drop) if config.signal == LIGHTNESS else rays.drop
    deviation = float(rays.drop[rays.is_inside].std()) if rays.is_inside.any() else 0.0
    if deviation < _MIN_DROP:
        raise EmptyRegionError("there is nothing to outline around this point")
    drop = drop / deviation
    passed = np.cumsum(np.maximum(drop, 0), axis=1) / config.penalty_scale
    drop = np.where(rays.is_inside, drop, config.border_gradient)
    return (penalties[:, None, None] * passed - drop).astype(np.float32)


def _margins(
    rings: list[Polygon], point: Point, margins: tuple[float, ...]
) -> tuple[list[Polygon], list[Polygon]]:
    """Rings inside the tightest and around the widest, so that there is always a choice."""
    tightest, widest = rings[0].buffer(0), rings[-1].buffer(0)
    shrunk = [tightest.buffer(-by * np.sqrt(tightest.area / np.pi)) for by in reversed(margins)]
    grown = [widest.buffer(by * np.sqrt(widest.area / np.pi)) for by in margins]
    inner = [ring for ring in shrunk if isinstance(ring, Polygon) and ring.contains(point)]
    return inner, [ring for ring in grown if isinstance(ring, Polygon)]


def _clip(
    ring: Polygon, bounds: Polygon, point: tuple[float, float], simplify_px: float
) -> Polygon:
    """Part of a ring inside the image that contains the point, simplified."""
    clipped = ring.buffer(0).intersection(bounds)
    parts = [part for part in getattr(clipped, "geoms", [clipped]) if isinstance(part, Polygon)]
    best = min(parts, key=lambda part: (part.distance(Point(point)), -part.area))
    simplified = best.simplify(simplify_px)
    return simplified if isinstance(simplified, Polygon) and not simplified.is_empty else best
