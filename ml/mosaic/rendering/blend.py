"""Stage 5, blend: two bands, tile by tile, in memory that does not grow with the mosaic.

Coarse colour is averaged widely, so that no seam shows; fine detail is taken almost wholly from
the frame that saw the spot best (far from the rim, sharp, no highlight), so that no ghost shows.
The view that counts is chosen on a small canvas: ``ml.mosaic.rendering.deghost``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from cachetools import LRUCache

from ml.geometry import box_corners, transform_points, translation
from ml.keypoints.masks import specular_mask
from ml.mosaic.alignment.canvas import MosaicCanvas, tile_file
from ml.mosaic.frames.sources import FrameSource
from ml.mosaic.frames.survey import Survey, usable_frames
from ml.mosaic.local_mesh.views import mesh_maps
from ml.mosaic.rendering.deghost import CommonHue, find_common_hue
from ml.types import ArrayF32, ArrayF64, ImageU8, Progress

TILE_PX = 512
"""Side of an accumulator tile; the pyramid has tiles of its own."""

TILES_IN_MEMORY = 24
"""24 accumulator tiles of 512 px are 200 MB; the others are on disk."""

FINE_POWER, COARSE_POWER = 8.0, 1.0
"""Powers of the distance to the rim: a plain mean of coarse colour, nearly one frame's detail."""

COARSE_SHARE = 0.04
"""Gaussian of the band split, as a share of the frame's shorter side."""

DEGHOST_FRAMES = 240
"""Enough frames to know what most show, however long the video."""

SPECULAR_WEIGHT = 0.05
"""Not zero: a spot that shone in every frame is shown as it was seen."""

SHADING_RANGE = (0.7, 1.3)
"""No more than this is compensated: what is darker at the rim is noise as well."""


def blend_frames(
    source: FrameSource,
    survey: Survey,
    canvas: MosaicCanvas,
    gains: dict[int, ArrayF32],
    *,
    out: np.ndarray,
    work_dir: Path,
    progress: Progress,
) -> None:
    """Blend every placed frame into ``out``, (H, W, 3) uint8 (may be a memory map); unseen is 0."""
    feather = rim_weight(survey)
    brightening = _brightening(survey)
    sample = _sample_frames(source, survey, canvas, gains, brightening, progress=progress)
    common = find_common_hue(sample, feather, canvas)
    usual = float(np.median([c.sharpness for c in survey.checks if not c.reason]))
    frame_count = 0
    with tempfile.TemporaryDirectory(dir=work_dir) as folder:
        painter = _Painter(Path(folder), feather, common)
        for position, rgb in key_pixels(source, survey, canvas):
            progress(frame_count, len(canvas.transforms), "blend")
            sharp = float(np.clip(survey.checks[position].sharpness / max(usual, 1e-9), 0.3, 2.0))
            matrix = canvas.transforms[position]
            box = _box(feather, matrix, canvas)
            if box[2] > box[0] and box[3] > box[1]:  # something of it falls on the canvas
                lit = _brighten(rgb, brightening)
                trusted = _trust(lit)
                if (mesh := canvas.meshes.get(position)) is not None:
                    maps = mesh_maps(mesh, (rgb.shape[1], rgb.shape[0]))
                    lit, trusted = _straighten(lit, maps), _straighten_trust(trusted, feather, maps)
                painter.add(lit, trusted, matrix, box, gains[position], sharp)
            frame_count += 1
        painter.write(out)


class _Painter:
    """Accumulator of frames in two bands, in tiles on disk."""

    def __init__(self, folder: Path, feather: ArrayF32, common: CommonHue) -> None:
        self._tiles, self._feather, self._common = TileStore(folder), feather, common

    def add(  # noqa: PLR0917
        self,
        rgb: ImageU8,
        trusted: ArrayF32,
        matrix: ArrayF64,
        box: tuple[int, int, int, int],
        gain: ArrayF32,
        sharp: float,
    ) -> None:
        """Add a frame, (H, W, 3) uint8, with its trust, matrix to the mosaic, box and gain."""
        left, top, right, bottom = box
        moved, size = translation(-left, -top) @ matrix, (right - left, bottom - top)
        pixels = _warp(rgb.astype(np.float32) * gain, moved, size)
        planes = _warp(np.dstack([self._feather, trusted]), moved, size)
        weight, trust = planes[:, :, 0], planes[:, :, 1]
        agreed = self._common.share(pixels, left, top)
        bands = _bands(pixels, weight, trust * np.float32(sharp**2), agreed)
        self._tiles.add(_Warped(left, top, bands))

    def write(self, out: np.ndarray) -> None:
        """Write the picture into ``out``, (H, W, 3) uint8."""
        self._tiles.write(out)


def _trust(rgb: ImageU8) -> ArrayF32:
    highlight = specular_mask(rgb)
    return np.where(highlight, np.float32(SPECULAR_WEIGHT), np.float32(1.0))


def key_pixels(
    source: FrameSource, survey: Survey, canvas: MosaicCanvas
) -> Iterator[tuple[int, ImageU8]]:
    """(position, rgb) of a mosaic's keyframes; decodes only their span."""
    first, last = min(canvas.transforms, default=0), max(canvas.transforms, default=-1)
    for position, rgb in usable_frames(source, survey, first=first):
        if position > last:
            return
        if position in canvas.transforms:
            yield position, rgb


def _sample_frames(
    source: FrameSource,
    survey: Survey,
    canvas: MosaicCanvas,
    gains: dict[int, ArrayF32],
    brightening: ArrayF32 | None,
    *,
    progress: Progress,
) -> Iterator[tuple[int, ArrayF32]]:
    """At most ``DEGHOST_FRAMES`` of the keyframes, evenly over time."""
    keys = sorted(canvas.transforms)
    chosen = set(keys[:: max(1, -(-len(keys) // DEGHOST_FRAMES))])
    for position, rgb in key_pixels(source, survey, canvas):
        progress(0, len(keys), "blend")
        if position in chosen:
            lit = _brighten(rgb, brightening)
            mesh = canvas.meshes.get(position)
            if mesh is not None:
                lit = _straighten(lit, mesh_maps(mesh, (rgb.shape[1], rgb.shape[0])))
            yield position, lit.astype(np.float32) * gains[position]


def _brightening(survey: Survey) -> ArrayF32 | None:
    """(H, W, 3) float32: factor of a frame that removes the lamp's fall-off to the rim."""
    if survey.shading is None or float(np.ptp(survey.shading)) < 0.02:
        return None
    limited = np.clip(survey.shading, *SHADING_RANGE)
    factor = cv2.resize(1 / limited, survey.size_px, interpolation=cv2.INTER_LINEAR)
    return np.asarray(cv2.merge([factor] * 3), np.float32)


def _brighten(rgb: ImageU8, brightening: ArrayF32 | None) -> ImageU8:
    if brightening is None:
        return rgb
    bright = cv2.multiply(rgb.astype(np.float32), brightening)
    return np.asarray(np.clip(bright, 0, 255), np.uint8)


def _straighten(rgb: ImageU8, maps: tuple[ArrayF32, ArrayF32]) -> ImageU8:
    """Warp a frame as if it showed a plane, for its homography."""
    border = cv2.BORDER_REPLICATE
    return np.asarray(cv2.remap(rgb, *maps, cv2.INTER_LINEAR, borderMode=border), np.uint8)


def _straighten_trust(
    trusted: ArrayF32, feather: ArrayF32, maps: tuple[ArrayF32, ArrayF32]
) -> ArrayF32:
    """Trust after straightening: none in what the mesh takes from outside the view."""
    valid = np.where(feather > 0, trusted, np.float32(0))
    return np.asarray(cv2.remap(valid, *maps, cv2.INTER_LINEAR), np.float32)


def rim_weight(survey: Survey) -> ArrayF32:
    """(H, W) float32 in [0, 1]: distance to the rim of the view, as a share of the largest."""
    inside = cv2.resize(
        survey.mask.astype(np.uint8), survey.size_px, interpolation=cv2.INTER_NEAREST
    )
    padded = cv2.copyMakeBorder(inside, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    distance = cv2.distanceTransform(padded, cv2.DIST_L2, 5)[1:-1, 1:-1]
    margin = max(2.0, 0.006 * min(survey.size_px))
    distance = np.maximum(distance - margin, 0)
    return np.asarray(distance / max(float(distance.max()), 1.0), np.float32)


class _Warped(NamedTuple):
    """A frame in the mosaic's plane: both bands and both weights over its bounding box."""

    left: int
    top: int
    bands: ArrayF32


def _warp(pixels: ArrayF32, matrix: ArrayF64, size: tuple[int, int]) -> ArrayF32:
    return np.asarray(cv2.warpPerspective(pixels, matrix, size), np.float32)


def _bands(pixels: ArrayF32, weight: ArrayF32, trust: ArrayF32, agreed: ArrayF32) -> ArrayF32:
    """(h, w, 8): coarse RGB times weight, that weight, fine RGB times weight, that weight."""
    valid = (weight > 0).astype(np.float32)
    # excluded px must not bleed into their neighbours
    coarse = _normalised_blur(pixels, valid * agreed)
    trust = trust * agreed
    coarse_weight = (_power(weight, COARSE_POWER) * np.minimum(trust, 1.0))[:, :, None]
    fine_weight = (_power(weight + np.float32(1e-3) * valid, FINE_POWER) * trust)[:, :, None]
    fine = pixels - coarse
    return np.concatenate(
        [coarse * coarse_weight, coarse_weight, fine * fine_weight, fine_weight], axis=2
    )


def _power(values: ArrayF32, power: float) -> ArrayF32:
    """Power by squaring where that suffices, ten times faster than a logarithm for each px."""
    doublings = np.log2(power)
    if not doublings.is_integer() or doublings < 0:
        return np.asarray(values**power, np.float32)
    for _ in range(int(doublings)):
        values = np.square(values)
    return values


def _normalised_blur(pixels: ArrayF32, valid: ArrayF32) -> ArrayF32:
    """Gaussian mean of the seen pixels only, computed at a quarter of the size."""
    height, width = valid.shape
    small = (max(1, width // 4), max(1, height // 4))
    sigma = max(1.0, COARSE_SHARE * min(height, width) / 4)
    mass = cv2.GaussianBlur(cv2.resize(valid, small, interpolation=cv2.INTER_AREA), (0, 0), sigma)
    total = cv2.resize(pixels * valid[:, :, None], small, interpolation=cv2.INTER_AREA)
    mean = cv2.GaussianBlur(total, (0, 0), sigma) / np.maximum(mass, 1e-4)[:, :, None]
    return np.asarray(cv2.resize(mean, (width, height), interpolation=cv2.INTER_LINEAR))


def _box(feather: ArrayF32, matrix: ArrayF64, canvas: MosaicCanvas) -> tuple[int, int, int, int]:
    rows, columns = np.nonzero(feather > 0)
    left, right, top, bottom = columns.min(), columns.max(), rows.min(), rows.max()
    corners = box_corners(left, top, right, bottom)
    spots = transform_points(matrix, corners)
    low, high = np.floor(spots.min(axis=0)), np.ceil(spots.max(axis=0)) + 1
    return (
        max(0, int(low[0])),
        max(0, int(low[1])),
        min(canvas.width_px, int(high[0])),
        min(canvas.height_px, int(high[1])),
    )


class _AccumulatorTiles(LRUCache[tuple[int, int], ArrayF32]):
    """Tiles by column and row, zero at first; those that are dropped go to files.

    Attributes:
        stored: Tiles that have a file.
    """

    def __init__(self, folder: Path, capacity: int) -> None:
        super().__init__(capacity)
        self._folder = folder
        self.stored: set[tuple[int, int]] = set()

    def __missing__(self, key: tuple[int, int]) -> ArrayF32:
        tile: ArrayF32 = (
            np.load(tile_file(self._folder, key))
            if key in self.stored
            else np.zeros((TILE_PX, TILE_PX, 8), np.float32)
        )
        self[key] = tile
        return tile

    def popitem(self) -> tuple[tuple[int, int], ArrayF32]:
        """Write the tile unused for longest to its file."""
        key, tile = super().popitem()
        np.save(tile_file(self._folder, key), tile)
        self.stored.add(key)
        return key, tile


class TileStore:
    """Accumulator tiles, the last used in memory, the others in files."""

    def __init__(self, folder: Path, *, capacity: int = TILES_IN_MEMORY) -> None:
        self._tiles = _AccumulatorTiles(folder, capacity)

    def add(self, view: _Warped) -> None:
        """Add a warped frame to every tile it touches."""
        height, width = view.bands.shape[:2]
        for row in range(view.top // TILE_PX, (view.top + height - 1) // TILE_PX + 1):
            for column in range(view.left // TILE_PX, (view.left + width - 1) // TILE_PX + 1):
                x, y = column * TILE_PX, row * TILE_PX
                x0, x1 = max(x, view.left), min(x + TILE_PX, view.left + width)
                y0, y1 = max(y, view.top), min(y + TILE_PX, view.top + height)
                part = view.bands[y0 - view.top : y1 - view.top, x0 - view.left : x1 - view.left]
                self._tiles[column, row][y0 - y : y1 - y, x0 - x : x1 - x] += part

    def write(self, out: np.ndarray) -> None:
        """Normalise every tile into ``out``."""
        for column, row in sorted(self._tiles.stored | set(self._tiles)):
            tile = self._tiles[column, row]
            y, x = row * TILE_PX, column * TILE_PX
            target = out[y : y + TILE_PX, x : x + TILE_PX]
            pixels = tile[:, :, :3] / np.maximum(tile[:, :, 3:4], 1e-12)
            pixels += tile[:, :, 4:7] / np.maximum(tile[:, :, 7:8], 1e-30)
            pixels[tile[:, :, 3] <= 0] = 0
            height, width = target.shape[:2]
            target[:] = np.clip(np.rint(pixels[:height, :width]), 0, 255).astype(np.uint8)
