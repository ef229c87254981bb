"""A demo slide made from an image that scikit-image ships in its wheel.

Real pixels, microns per pixel, and regions that differ. The same seed gives the same content.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from ml.imaging.samples.packaged import packaged_image
from ml.imaging.slides.pyramids import write_pyramid
from ml.types import ImageU8, Progress, no_progress

SLIDE_MPP = 0.5  # a scan at 20x
_H_DAB = np.array([[0.65, 0.70, 0.29], [0.27, 0.57, 0.78]])
"""Optical densities of haematoxylin and DAB: Ruifrok and Johnston 2001, as in skimage.color."""
_GLASS_DENSITY = 0.035  # optical density of bare glass, grey level 246
_BLOCK_PX = 2_048  # rows painted at once; bounds memory
_SPACING_PX, _REACH_PX = 330, 330  # copies of the 512 px field overlap by a third
_SEAM_PX2 = 4_000.0
"""Seams about ten pixels wide where two copies meet half-way."""


def make_sample_slide(
    out_path: str | Path,
    *,
    size_px: tuple[int, int] = (5_120, 4_096),
    seed: int = 7,
    progress: Progress = no_progress,
) -> Path:
    """Write a tiled JPEG pyramid of real immunostained tissue, 0.5 um per pixel.

    The 512 px field of ``ihc.png`` is repeated as a mosaic; each copy is rotated, zoomed and its
    two stains scaled differently, blended with irregular seams, and cropped to two sections on
    glass.

    Args:
        size_px: (width, height).
    Returns:
        ``out_path``.
    """
    field = packaged_image("ihc.png").astype(np.float32)
    density = -np.log(np.clip(field, 1, 255) / np.float32(255))
    width, height = size_px
    patches = _scatter_patches(np.random.default_rng(seed), width, height)
    out: ImageU8 = np.empty((height, width, 3), np.uint8)
    for top in range(0, height, _BLOCK_PX):
        progress(top * 60 // height, 100, "painting tissue")
        rows = slice(top, min(top + _BLOCK_PX, height))
        out[rows] = _paint(density, patches, rows, width, height)

    def written(done: int, total: int, phase: str) -> None:
        progress(60 + done * 40 // total, 100, phase)

    return write_pyramid(out, out_path, mpp=SLIDE_MPP, quality=85, progress=written)


_Field = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Patch:
    """One rotated copy of the field: centre, rotation, zoom and factors of its two stains."""

    x: float
    y: float
    angle_deg: float
    zoom: float
    haematoxylin: float
    dab: float


@dataclass(frozen=True, slots=True, eq=False)
class _Canvas:
    """Rows of the slide: summed densities, summed weights, share of tissue."""

    total: _Field
    weight: _Field
    cover: _Field
    top: int


def _scatter_patches(rng: np.random.Generator, width: int, height: int) -> list[_Patch]:
    """Patches on a jittered grid; stain follows a slow wave over the slide, and varies by patch."""
    patches = []
    for row in range(-1, height // _SPACING_PX + 2):
        for column in range(-1, width // _SPACING_PX + 2):
            x, y = (np.array([column, row]) + rng.uniform(-0.3, 0.3, 2)) * _SPACING_PX
            wave = np.sin(x / width * 5.0 + 1.3 * np.cos(y / height * 4.0))
            patches.append(
                _Patch(
                    x=float(x),
                    y=float(y),
                    angle_deg=float(rng.uniform(0, 360)),
                    zoom=float(rng.uniform(0.9, 1.15)),
                    haematoxylin=float(1.0 - 0.2 * wave + rng.uniform(-0.1, 0.1)),
                    dab=float(0.85 + 0.5 * wave + rng.uniform(-0.1, 0.1)),
                )
            )
    return patches


def _paint(density: _Field, patches: list[_Patch], rows: slice, width: int, height: int) -> ImageU8:
    x = np.arange(width, dtype=np.float32)
    y = np.arange(rows.start, rows.stop, dtype=np.float32)
    cover = _sections(*np.meshgrid(x / np.float32(width), y / np.float32(height)))
    shape = cover.shape
    canvas = _Canvas(
        total=np.zeros((*shape, 3), np.float32),
        weight=np.full(shape, 1e-20, np.float32),
        cover=cover,
        top=rows.start,
    )
    for patch in patches:
        _add(canvas, density, patch)
    optical = canvas.total / canvas.weight[..., None] * cover[..., None] + np.float32(
        _GLASS_DENSITY
    )
    return np.asarray(np.clip(255 * np.exp(-optical) + 0.5, 0, 255), np.uint8)


def _add(canvas: _Canvas, density: _Field, patch: _Patch) -> None:
    """Add one patch, weighted so that neighbours meet in a soft seam."""
    top, (height, width) = canvas.top, canvas.cover.shape
    left, low = int(patch.x) - _REACH_PX, int(patch.y) - _REACH_PX
    x0, x1 = max(left, 0), min(left + 2 * _REACH_PX, width)
    y0, y1 = max(low, top), min(low + 2 * _REACH_PX, top + height)
    window = (slice(max(y0 - top, 0), max(y1 - top, 0)), slice(x0, max(x1, 0)))
    if not canvas.cover[window].any():
        return
    scaled = _restain(density, patch.haematoxylin, patch.dab)
    centre = ((density.shape[1] - 1) / 2, (density.shape[0] - 1) / 2)
    turn = cv2.getRotationMatrix2D(centre, patch.angle_deg, patch.zoom)
    turn[:, 2] += (patch.x - x0 - centre[0], patch.y - y0 - centre[1])
    warped = cv2.warpAffine(
        scaled, turn, (x1 - x0, y1 - y0), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101
    )
    x = np.arange(x0, x1, dtype=np.float32) - np.float32(patch.x)
    y = np.arange(y0, y1, dtype=np.float32)[:, None] - np.float32(patch.y)
    ragged = np.float32(26) * np.sin(x / 19 + np.float32(patch.x)) * np.cos(y / 23)
    distance = np.clip(np.sqrt(x * x + y * y) + ragged, 0, None)
    share = np.exp(-distance * distance / np.float32(_SEAM_PX2))
    canvas.total[window] += np.clip(warped, 0, None) * share[..., None]
    canvas.weight[window] += share


def _restain(density: _Field, haematoxylin: float, dab: float) -> _Field:
    stains = (_H_DAB / np.linalg.norm(_H_DAB, axis=1, keepdims=True)).astype(np.float32)
    amounts = np.clip(density @ np.linalg.pinv(stains), 0, None)
    residual = (density - amounts @ stains) * np.float32(min(dab, haematoxylin))
    scaled = amounts * np.array([haematoxylin, dab], np.float32)
    return np.asarray(np.clip(scaled @ stains + residual, 0, None), np.float32)


def _sections(u: _Field, v: _Field) -> _Field:
    """Two uneven sections next to each other: 1 on tissue, 0 on glass, soft between."""
    edge = 0.07 * np.sin(9 * u + 4 * v) + 0.05 * np.sin(17 * v - 11 * u) + 0.02 * np.sin(41 * u)
    left = np.hypot((u - 0.34) / 0.29, (v - 0.50) / 0.42) + edge
    right = np.hypot((u - 0.80) / 0.14, (v - 0.47) / 0.33) - edge
    return np.asarray(np.clip((1.0 - np.minimum(left, right)) * 90, 0, 1), np.float32)
