"""Propose the outline of a gland, a nest or a polyp from one click inside of it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from shapely import Point, Polygon, box

from ml.errors import BadInputError, EmptyRegionError, ShapeError, UnknownNameError
from ml.outline.paths import closed_paths
from ml.outline.rays import HAEMATOXYLIN, LIGHTNESS, SIGNALS, Rays, Stand, cast_rays, signal_of
from ml.types import ArrayF32, ArrayF64, ImageU8

LEAST_PX = 32
"""Of a side of the image: smaller ones show nothing to outline."""
_LEAST_DROP = 5e-4
"""Deviation of the drop in darkness along rays: ten times that of the noise of empty glass."""
_MOST_STRETCH = 3.0  # longer glands bend, and as a rule are no longer star-shaped
_EVEN_PX = 4.0  # between points whose spread is taken: some hundreds around a gland


@dataclass(frozen=True, slots=True)
class OutlineConfig:
    """How an outline is found. Lengths are shares of the longer side of what is shown."""

    signal: str = HAEMATOXYLIN  # of stained tissue; "lightness" of what a scope sees
    work_px: int = 640  # longer side of the image that is searched
    directions: int = 128  # corners of a ring before it is simplified
    places: int = 150  # distances tried in each direction
    reach: float = 0.5  # the farthest of them
    least: float = 0.015  # the nearest
    sigma: float = 0.0065  # of the smoothing: half a layer of nuclei where a gland fills a quarter
    sigma_places: float = 1.5  # smoothing along rays
    first: float = 0.4  # how much the first ends count over the strongest, of the likely ring
    steps: int = 3  # rings to either side of it; each step doubles or halves ``first``
    most_step: int = 5  # places that neighbouring directions may differ by
    step_cost: float = 0.1  # of each of them, in deviations of the drop
    edge: float = 1.0  # what the edge of the image counts as, in the same deviations
    again: int = 2  # searches from the middle of what was found, stretched as it is
    per_places: float = 10.0  # passed ends are summed over the places and divided by this
    margins: tuple[float, ...] = (0.06, 0.12)  # of the radius, beyond the tightest and the widest
    simplify_px: float = 0.75  # of the searched image; below what is seen


@dataclass(frozen=True, slots=True)
class Outline:
    """Rings around a click, each inside the next.

    Attributes:
        rings: at least one, tightest first; (N, 2) float64 each, pixels of the image, not closed.
        likely: the one to show first.
    """

    rings: tuple[ArrayF64, ...]
    likely: int


def propose_outline(
    image: ImageU8, xy: tuple[float, float], *, config: OutlineConfig = OutlineConfig()
) -> Outline:
    """Where the structure around a point ends: first where dark tissue gives way to light.

    A ring is the cheapest closed path around the point: strong ends of darkness (of the layer of
    nuclei that bounds a gland) are cheap, and each end that a ray has passed already makes the
    next ones dearer. How much dearer decides between tighter and wider rings. The search is then
    repeated, up to ``again`` times, from the middle of what was found, so that it matters little
    where inside the point lies. What is found is star-shaped as seen from the last middle.

    Args:
        image: (H, W, 3) uint8 RGB: what is shown, at the magnification at which the structure
            takes up between a twentieth and nearly all of it.
        xy: the point, pixels of the image, x right, y down.
    Raises:
        ShapeError: not (H, W, 3) uint8, or a side shorter than ``LEAST_PX``.
        BadInputError: the point lies outside the image.
        EmptyRegionError: nothing around the point ends anywhere (empty glass).
        UnknownNameError: no such signal.
    Source: closed contours by dynamic programming in polar coordinates; the toll on passed ends,
        the rings of several tolls and the repeated search are ours.
    """
    _check(image, xy, config)
    height, width = image.shape[:2]
    scale = min(1.0, config.work_px / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA) if scale < 1 else image
    by = np.array([size[0] / width, size[1] / height])
    side = max(size)
    dark = signal_of(np.asarray(small, np.uint8), config.signal, config.sigma * side)
    radius = np.linspace(config.least, config.reach, config.places) * side
    at = (float(xy[0] * by[0]), float(xy[1] * by[1]))
    rings, likely = _rings(dark, Stand(at, np.eye(2)), radius, config)
    for _ in range(config.again):
        better = _stand_in(rings[likely])
        if not rings[likely].contains(Point(better.centre)):
            break
        then, then_likely = _rings(dark, better, radius, config)
        if not then[then_likely].contains(Point(at)):
            break
        rings, likely = then, then_likely
    tighter, wider = _margins(rings, Point(at), config.margins)
    rings, likely = tighter + rings + wider, likely + len(tighter)
    inside = box(0, 0, *size)
    cut = [_inside(ring, inside, at, config.simplify_px) for ring in rings]
    return Outline(tuple(np.asarray(ring.exterior.coords)[:-1] / by for ring in cut), likely)


def _check(image: ImageU8, xy: tuple[float, float], config: OutlineConfig) -> None:
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        found = f"{image.shape} {image.dtype}"
        raise ShapeError("image", expected="(H, W, 3) uint8", actual=found)
    height, width = image.shape[:2]
    if min(height, width) < LEAST_PX:
        sides = f"sides of at least {LEAST_PX} px"
        raise ShapeError("image", expected=sides, actual=f"{width} x {height}")
    if not (0 <= xy[0] <= width and 0 <= xy[1] <= height):
        raise BadInputError(f"the point {xy} lies outside the image of {width} x {height} px")
    if config.signal not in SIGNALS:
        raise UnknownNameError("signal", config.signal, list(SIGNALS))


def _stand_in(ring: Polygon) -> Stand:
    """Its middle, and how much longer than wide it is, by the spread of its points."""
    around = np.asarray(ring.segmentize(_EVEN_PX).exterior.coords)[:-1]
    values, axes = np.linalg.eigh(np.cov(around.T))
    stretch = np.sqrt(np.maximum(values, values.max() / _MOST_STRETCH**2))
    stretch /= np.sqrt(stretch.prod())
    return Stand((ring.centroid.x, ring.centroid.y), axes @ np.diag(stretch) @ axes.T)


def _rings(
    dark: ArrayF32, stand: Stand, radius: ArrayF64, config: OutlineConfig
) -> tuple[list[Polygon], int]:
    """Those that differ, tightest first, and the place of the likely one."""
    rays = cast_rays(
        dark,
        stand,
        directions=config.directions,
        radius=radius,
        sigma=config.sigma_places,
    )
    steps = np.arange(config.steps, -config.steps - 1, -1, dtype=np.float64)
    tolls: ArrayF64 = config.first * np.exp2(steps)
    paths = closed_paths(
        _costs(rays, tolls, config), most_step=config.most_step, step_cost=config.step_cost
    )
    found: list[Polygon] = []
    likely, last = 0, None
    for level, path in enumerate(paths):
        if last is None or np.abs(path - last).mean() >= 1:
            found.append(Polygon(rays.points(radius[path])))
            last = path
        if level == config.steps:
            likely = len(found) - 1
    return found, likely


def _costs(rays: Rays, tolls: ArrayF64, config: OutlineConfig) -> ArrayF32:
    drop = np.abs(rays.drop) if config.signal == LIGHTNESS else rays.drop
    deviation = float(rays.drop[rays.is_seen].std()) if rays.is_seen.any() else 0.0
    if deviation < _LEAST_DROP:
        raise EmptyRegionError("there is nothing to outline around this point")
    drop = drop / deviation
    passed = np.cumsum(np.maximum(drop, 0), axis=1) / config.per_places
    drop = np.where(rays.is_seen, drop, config.edge)
    return (tolls[:, None, None] * passed - drop).astype(np.float32)


def _margins(
    rings: list[Polygon], at: Point, margins: tuple[float, ...]
) -> tuple[list[Polygon], list[Polygon]]:
    """Rings within the tightest and around the widest, so that there is always some choice."""
    tightest, widest = rings[0].buffer(0), rings[-1].buffer(0)
    less = [tightest.buffer(-by * np.sqrt(tightest.area / np.pi)) for by in reversed(margins)]
    more = [widest.buffer(by * np.sqrt(widest.area / np.pi)) for by in margins]
    kept = [one for one in less if isinstance(one, Polygon) and one.contains(at)]
    return kept, [one for one in more if isinstance(one, Polygon)]


def _inside(ring: Polygon, bounds: Polygon, at: tuple[float, float], simplify_px: float) -> Polygon:
    """What the image holds of a ring: the part with the point."""
    cut = ring.buffer(0).intersection(bounds)
    parts = [part for part in getattr(cut, "geoms", [cut]) if isinstance(part, Polygon)]
    best = min(parts, key=lambda part: (part.distance(Point(at)), -part.area))
    plain = best.simplify(simplify_px)
    return plain if isinstance(plain, Polygon) and not plain.is_empty else best
