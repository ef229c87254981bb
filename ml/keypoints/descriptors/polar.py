"""Foveated polar patches: rings around key points, denser at the centre."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from ml.types import ArrayF32, ImageU8

DARK_LEVEL = 10
"""Grey level below which regions at the image border are outside the field of view."""

TILE_PX = 2048
"""Side above which an image is sampled in tiles, to bound the memory of float copies."""

RIM_PX = 16
"""Largest distance outside the field of view of a point that is sampled inside it only."""

_RIM = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * RIM_PX + 1, 2 * RIM_PX + 1))

MAX_LEVEL = 6
"""Largest level of the image pyramid; rings of trained grids need no more."""

ALIGN_PX = 2**MAX_LEVEL
"""Crops start at multiples of this, so that the pixels of pyramid levels coincide."""

MIN_STEP = 0.75
"""Smallest spacing of rings in pixels of their pyramid level; the largest is 1.5."""

MAX_DEVIATIONS = 4.0
"""Clipping of normalised grey, so that highlights do not dominate."""

MIN_INSIDE = 1e-3
"""Lower bound of the share inside the field of view in divisions."""

CHUNK = 256
"""Patches per chunk, which fit into the cache of a core."""

NOISE_LEVEL = 1.5
"""Grey levels added to the contrast of a patch, so that noise is not amplified."""


@dataclass(frozen=True, slots=True)
class PolarGrid:
    """Sampling positions of a patch.

    Attributes:
        rings: Number of rings R.
        angles: Samples per ring T.
        radius_px: Outermost radius.
        core_px: Radius inside which rings are nearly evenly spaced.
    """

    rings: int
    angles: int
    radius_px: float
    core_px: float

    def radii_px(self) -> ArrayF32:
        """Radii (R,) float32: r(u) = core (exp(u L) - 1) at u = (i + 1/2) / R, r(1) = radius."""
        span = np.log1p(self.radius_px / self.core_px)
        u = (np.arange(self.rings) + 0.5) / self.rings
        return np.asarray(self.core_px * np.expm1(u * span), np.float32)

    def levels(self, zoom: float = 1.0) -> np.ndarray:
        """Pyramid level (R,) int64 of each ring, by the spacing of rings."""
        span = np.log1p(self.radius_px / self.core_px)
        spacing = (self.radii_px() + self.core_px) * span / self.rings * zoom
        level = np.floor(np.log2(np.maximum(spacing / MIN_STEP, 1.0)))
        return np.asarray(np.clip(level, 0, MAX_LEVEL), np.int64)


def polar_patches(
    grey: ImageU8, xy: ArrayF32, *, grid: PolarGrid, zoom: ArrayF32 | None = None
) -> ArrayF32:
    """Sample rings around each key point.

    Args:
        grey: (H, W) uint8.
        xy: (N, 2) float32 pixels, also outside the image.
        zoom: (N,) factors on the radii; None for 1.
    Returns:
        (N, 2, R, T) float32, grey standardised over the part of the patch inside the field of view
        (0 outside), and the share of each sample inside, in [0, 1]. For points outside the field of
        view (such as burnt-in text) all of the image counts as inside.
    """
    patches = np.zeros((len(xy), 2, grid.rings, grid.angles), np.float32)
    if not len(xy):
        return patches
    valid = visible_area(grey)
    near_field = cv2.dilate(valid, _RIM)  # at the rim, noise would decide
    pixel = np.clip(np.rint(xy), 0, [grey.shape[1] - 1, grey.shape[0] - 1]).astype(np.int64)
    is_inside = near_field[pixel[:, 1], pixel[:, 0]] > 0
    factor = np.ones(len(xy), np.float32) if zoom is None else np.asarray(zoom, np.float32)
    for rows, share in ((is_inside, valid), (~is_inside, np.ones_like(valid))):
        if rows.any():
            patches[rows] = _sample_tiles(grey, share, xy[rows], factor[rows], grid)
    return normalise_patches(patches)


def normalise_patches(patches: ArrayF32) -> ArrayF32:
    """Normalise patches (N, 2, R, T) of (grey times share, share), see ``polar_patches``."""
    patches = np.ascontiguousarray(patches)
    flat = patches.reshape(len(patches), 2, -1)
    for start in range(0, len(flat), CHUNK):
        part = flat[start : start + CHUNK]
        share = part[:, 1]
        value = part[:, 0] / np.maximum(share, MIN_INSIDE)
        total = np.maximum(share.sum(axis=1), MIN_INSIDE)
        value -= (np.einsum("np,np->n", value, share) / total)[:, None]
        spread = np.sqrt(np.einsum("np,np->n", value * share, value) / total)
        value /= (spread + NOISE_LEVEL)[:, None]
        np.clip(value, -MAX_DEVIATIONS, MAX_DEVIATIONS, out=value)
        np.multiply(value, share, out=part[:, 0])
    return patches


def visible_area(grey: ImageU8) -> ImageU8:
    """Mask (H, W) uint8: 0 in dark regions at the image border, else 1; precise to two pixels."""
    height, width = grey.shape
    size = (max(1, width // 2), max(1, height // 2))
    coarse = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    dark = (coarse < DARK_LEVEL).astype(np.uint8)
    # a frame of one cell connects all dark regions at the border for a single flood fill
    framed = cv2.copyMakeBorder(dark, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=1)
    cv2.floodFill(framed, None, (0, 0), 2)
    outside = (framed == 2).astype(np.uint8)[1:-1, 1:-1]
    # cells next to dark ones are partly dark
    inside = 1 - cv2.dilate(outside, np.ones((3, 3), np.uint8))
    return np.asarray(
        cv2.resize(inside, (width, height), interpolation=cv2.INTER_NEAREST), np.uint8
    )


def _sample_tiles(
    grey: ImageU8, valid: ImageU8, xy: ArrayF32, zoom: ArrayF32, grid: PolarGrid
) -> ArrayF32:
    """Sample patches (N, 2, R, T) of (grey times share, share), by tiles of the image."""
    patches = np.empty((len(xy), 2, grid.rings, grid.angles), np.float32)
    octave = np.rint(2.0 * np.log2(zoom)) / 2.0  # key points of equal smoothing
    depth = int(grid.levels(2.0 ** float(octave.max())).max()) + 1
    margin = int(np.ceil((grid.radius_px * float(zoom.max()) + ALIGN_PX) / ALIGN_PX)) * ALIGN_PX
    for rows, (x0, y0, x1, y1) in _tiles(grey.shape, xy, margin):
        planes = _planes(grey[y0:y1, x0:x1], valid[y0:y1, x0:x1], depth)
        offset = np.array([x0, y0], np.float32)
        for current in np.unique(octave[rows]):
            same_octave = rows[octave[rows] == current]
            levels = np.minimum(grid.levels(2.0 ** float(current)), len(planes) - 1)
            for start in range(0, len(same_octave), CHUNK):
                part = same_octave[start : start + CHUNK]
                patches[part] = _sample_rings(planes, levels, xy[part] - offset, zoom[part], grid)
    return patches


def _tiles(
    shape: tuple[int, ...], xy: ArrayF32, margin_px: int
) -> Iterator[tuple[np.ndarray, tuple[int, int, int, int]]]:
    """Yield the points of each tile, and the crop (x0, y0, x1, y1) with their patches.

    Crops start at multiples of ``ALIGN_PX``.
    """
    height, width = shape[0], shape[1]
    if max(height, width) <= TILE_PX:
        yield np.arange(len(xy)), (0, 0, width, height)
        return
    inside = np.clip(xy, 0, [width - 1, height - 1]).astype(np.int64)
    column, row = inside[:, 0] // TILE_PX, inside[:, 1] // TILE_PX
    tile = row * (width // TILE_PX + 1) + column
    for number in np.unique(tile):
        rows = np.flatnonzero(tile == number)
        x, y = int(column[rows[0]]) * TILE_PX, int(row[rows[0]]) * TILE_PX
        yield (
            rows,
            (
                max(0, x - margin_px),
                max(0, y - margin_px),
                min(width, x + TILE_PX + margin_px),
                min(height, y + TILE_PX + margin_px),
            ),
        )


def _planes(grey: ImageU8, valid: ImageU8, count: int) -> list[ArrayF32]:
    """Image pyramid of (grey times mask, mask), (h, w, 2) float32 each."""
    share = valid.astype(np.float32)
    planes = [np.asarray(cv2.merge([grey.astype(np.float32) * share, share]), np.float32)]
    while len(planes) < count and min(planes[-1].shape[:2]) >= 4:
        planes.append(np.asarray(cv2.pyrDown(planes[-1]), np.float32))
    return planes


def _sample_rings(
    planes: list[ArrayF32], levels: np.ndarray, xy: ArrayF32, zoom: ArrayF32, grid: PolarGrid
) -> ArrayF32:
    """Bilinear samples (n, 2, R, T); pixel (0, 0) coincides on all levels."""
    out = np.empty((len(xy), 2, grid.rings, grid.angles), np.float32)
    angle = np.arange(grid.angles) * (2 * np.pi / grid.angles)
    radii = grid.radii_px()
    for level in np.unique(levels):
        rings = np.flatnonzero(levels == level)
        step_x = np.outer(radii[rings], np.cos(angle)).ravel().astype(np.float32)
        step_y = np.outer(radii[rings], np.sin(angle)).ravel().astype(np.float32)
        shrink = np.float32(0.5**level)
        map_x = (xy[:, :1] + zoom[:, None] * step_x) * shrink
        map_y = (xy[:, 1:] + zoom[:, None] * step_y) * shrink
        samples = cv2.remap(
            planes[level],
            map_x.astype(np.float32),
            map_y.astype(np.float32),
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_CONSTANT,
            borderValue=0,
        )
        shaped = samples.reshape(len(xy), len(rings), grid.angles, 2)
        out[:, :, rings] = shaped.transpose(0, 3, 1, 2)
    return out
