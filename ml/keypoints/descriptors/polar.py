"""Foveated polar patches: fine rings at the key point, coarse ones far out, one gather for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from ml.types import ArrayF32, ImageU8

DARK_LEVEL = 10
"""Grey level below which what touches the image border lies outside the field of view."""

TILE_PX = 2048
"""Larger images are sampled tile by tile, so that their float copies stay small."""

RIM_PX = 16
"""A point at most so far outside the field of view is one of its rim: it sees the field only."""

_RIM = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * RIM_PX + 1, 2 * RIM_PX + 1))

MAX_LEVEL = 6
"""Images are halved this many times at most: no ring of a trained grid asks for more."""

ALIGN_PX = 2**MAX_LEVEL
"""Crops start at multiples of this, so that their halved images fall on the same pixels."""

LEAST_STEP = 0.75
"""Rings that read a halved image lie 0.75 to 1.5 of its pixels apart."""

MAX_DEVIATIONS = 4.0
"""Normalised grey is cut at this many deviations: highlights must not outweigh the tissue."""

LEAST_INSIDE = 1e-3
"""A share inside the field below this is none, so that grey is divided by no zero."""

CHUNK = 256
"""Patches sampled or normalised at once: they stay in the cache of a core."""

NOISE_LEVEL = 1.5
"""Grey levels added to a patch's contrast: flat patches must not become pure noise."""


@dataclass(frozen=True, slots=True)
class PolarGrid:
    """Where a patch is sampled.

    Attributes:
        rings: R. angles: T.
        radius_px: outermost radius. core_px: radius inside which rings are nearly even.
    """

    rings: int
    angles: int
    radius_px: float
    core_px: float

    def radii_px(self) -> ArrayF32:
        """(R,) float32: r(u) = core (exp(u L) - 1) at u = (i + 1/2) / R, r(1) = radius."""
        span = np.log1p(self.radius_px / self.core_px)
        u = (np.arange(self.rings) + 0.5) / self.rings
        return np.asarray(self.core_px * np.expm1(u * span), np.float32)

    def levels(self, zoom: float = 1.0) -> np.ndarray:
        """(R,) int64: the halved image each ring reads, by its distance to the next ring."""
        span = np.log1p(self.radius_px / self.core_px)
        spacing = (self.radii_px() + self.core_px) * span / self.rings * zoom
        level = np.floor(np.log2(np.maximum(spacing / LEAST_STEP, 1.0)))
        return np.asarray(np.clip(level, 0, MAX_LEVEL), np.int64)


def polar_patches(
    grey: ImageU8, xy: ArrayF32, *, grid: PolarGrid, zoom: ArrayF32 | None = None
) -> ArrayF32:
    """Sample rings around each key point.

    Args:
        grey: (H, W) uint8. xy: (N, 2) float32 pixels, anywhere.
        zoom: (N,) factor on the radii of each point; None is 1.
    Returns:
        (N, 2, R, T) float32: grey with mean 0 and deviation 1 over the part of the patch inside
        the field of view (0 outside), and the share of each sample that is inside, in [0, 1]. For
        a point beyond the rim of the field of view (burnt-in text, say) the whole image counts as
        inside.
    """
    patches = np.zeros((len(xy), 2, grid.rings, grid.angles), np.float32)
    if not len(xy):
        return patches
    valid = visible_area(grey)
    near = cv2.dilate(valid, _RIM)  # on the rim itself noise would decide the side
    at = np.clip(np.rint(xy), 0, [grey.shape[1] - 1, grey.shape[0] - 1]).astype(np.int64)
    is_inside = near[at[:, 1], at[:, 0]] > 0
    factor = np.ones(len(xy), np.float32) if zoom is None else np.asarray(zoom, np.float32)
    for rows, share in ((is_inside, valid), (~is_inside, np.ones_like(valid))):
        if rows.any():
            patches[rows] = _all_sampled(grey, share, xy[rows], factor[rows], grid)
    return normalised(patches)


def normalised(patches: ArrayF32) -> ArrayF32:
    """(N, 2, R, T) of (grey times share, share) to the documented normalisation."""
    patches = np.ascontiguousarray(patches)
    flat = patches.reshape(len(patches), 2, -1)
    for start in range(0, len(flat), CHUNK):
        part = flat[start : start + CHUNK]
        share = part[:, 1]
        value = part[:, 0] / np.maximum(share, LEAST_INSIDE)
        total = np.maximum(share.sum(axis=1), LEAST_INSIDE)
        value -= (np.einsum("np,np->n", value, share) / total)[:, None]
        spread = np.sqrt(np.einsum("np,np->n", value * share, value) / total)
        value /= (spread + NOISE_LEVEL)[:, None]
        np.clip(value, -MAX_DEVIATIONS, MAX_DEVIATIONS, out=value)
        np.multiply(value, share, out=part[:, 0])
    return patches


def visible_area(grey: ImageU8) -> ImageU8:
    """(H, W) uint8: 1 inside, 0 in the dark regions that touch the image border, to two pixels."""
    height, width = grey.shape
    size = (max(1, width // 2), max(1, height // 2))
    coarse = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    dark = (coarse < DARK_LEVEL).astype(np.uint8)
    # a frame of one cell joins all dark regions at the border, for one flood
    framed = cv2.copyMakeBorder(dark, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=1)
    cv2.floodFill(framed, None, (0, 0), 2)
    outside = (framed == 2).astype(np.uint8)[1:-1, 1:-1]
    # the cell beside a dark one is mixed
    inside = 1 - cv2.dilate(outside, np.ones((3, 3), np.uint8))
    return np.asarray(
        cv2.resize(inside, (width, height), interpolation=cv2.INTER_NEAREST), np.uint8
    )


def _all_sampled(
    grey: ImageU8, valid: ImageU8, xy: ArrayF32, zoom: ArrayF32, grid: PolarGrid
) -> ArrayF32:
    """(N, 2, R, T) of (grey times share, share), tile by tile of the image."""
    patches = np.empty((len(xy), 2, grid.rings, grid.angles), np.float32)
    octave = np.rint(2.0 * np.log2(zoom)) / 2.0  # key points smoothed alike share one
    depth = int(grid.levels(2.0 ** float(octave.max())).max()) + 1
    margin = int(np.ceil((grid.radius_px * float(zoom.max()) + ALIGN_PX) / ALIGN_PX)) * ALIGN_PX
    for rows, (x0, y0, x1, y1) in _tiles(grey.shape, xy, margin):
        planes = _planes(grey[y0:y1, x0:x1], valid[y0:y1, x0:x1], depth)
        offset = np.array([x0, y0], np.float32)
        for current in np.unique(octave[rows]):
            alike = rows[octave[rows] == current]
            levels = np.minimum(grid.levels(2.0 ** float(current)), len(planes) - 1)
            for start in range(0, len(alike), CHUNK):
                part = alike[start : start + CHUNK]
                patches[part] = _sampled(planes, levels, xy[part] - offset, zoom[part], grid)
    return patches


def _tiles(
    shape: tuple[int, ...], xy: ArrayF32, margin_px: int
) -> Iterator[tuple[np.ndarray, tuple[int, int, int, int]]]:
    """Rows of the points of each tile, and the crop (x0, y0, x1, y1) that holds their patches.

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
    """(h, w, 2) grey times validity, and validity, at full size and halved again and again."""
    share = valid.astype(np.float32)
    planes = [np.asarray(cv2.merge([grey.astype(np.float32) * share, share]), np.float32)]
    while len(planes) < count and min(planes[-1].shape[:2]) >= 4:
        planes.append(np.asarray(cv2.pyrDown(planes[-1]), np.float32))
    return planes


def _sampled(
    planes: list[ArrayF32], levels: np.ndarray, xy: ArrayF32, zoom: ArrayF32, grid: PolarGrid
) -> ArrayF32:
    """(n, 2, R, T) bilinear samples; a level's pixel (0, 0) lies on the image's."""
    out = np.empty((len(xy), 2, grid.rings, grid.angles), np.float32)
    turn = np.arange(grid.angles) * (2 * np.pi / grid.angles)
    radii = grid.radii_px()
    for level in np.unique(levels):
        rings = np.flatnonzero(levels == level)
        step_x = np.outer(radii[rings], np.cos(turn)).ravel().astype(np.float32)
        step_y = np.outer(radii[rings], np.sin(turn)).ravel().astype(np.float32)
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
