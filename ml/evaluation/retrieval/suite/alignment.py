"""Alignment of two adjacent sections by their outlines, and the cells that both hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError, EmptyRegionError
from ml.imaging.slides.slide import open_slide
from ml.roi.geometry import ASSUMED_MPP
from ml.roi.patches import isotropic_mpp
from ml.types import ArrayF64, ImageU8

CELL_UM = 256.0
"""Side of a grid cell: a patch of 224 px at 1 um per pixel, and a margin."""

MIN_OVERLAP = 0.6
"""Least overlap of the outlines of adjacent sections."""

READ_MPP = 1.0
"""Microns per pixel that sections are read at."""

_OVERVIEW_PX = 512
"""Longer side of the overview images."""

_MIN_INSIDE = 0.75
"""Share of tissue that a cell needs in both sections."""

_ANGLES = 72
"""Number of initial rotations: every 5 degrees."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section at 1 um per pixel.

    Attributes:
        name: of its file.
        pixels: (H, W, 3) uint8 RGB.
        mask: (H', W') uint8, 255 on tissue, overview scale.
        scale: overview pixels per pixel of ``pixels``.
    """

    name: str
    pixels: ImageU8
    mask: ImageU8
    scale: float


@dataclass(frozen=True, slots=True)
class PairedCells:
    """Cells of a section and the same places in the next, in pixels of 1 um.

    Attributes:
        xy_a, xy_b: (N, 2) float64 centres, x right, y down, in either section.
        side_px: of a cell.
        overlap: of the outlines, intersection over union.
    """

    xy_a: ArrayF64
    xy_b: ArrayF64
    side_px: int
    overlap: float


def paired_cells(
    a: Section, b: Section, *, cell_um: float = CELL_UM, stride_um: float | None = None
) -> PairedCells:
    """Cells on tissue of a section, and their positions in the next.

    Args:
        cell_um: side of a cell.
        stride_um: between their centres; by default the side, so that
            cells do not overlap.
    Raises:
        BadInputError: the outlines do not fit on each other, or fewer than five cells on tissue.
    """
    overview, overlap = align_masks(a.mask, b.mask)
    if overlap < MIN_OVERLAP:
        raise BadInputError(
            f"{a.name}, {b.name}: not adjacent sections: their outlines overlap"
            f" {overlap:.2f}, expected {MIN_OVERLAP} or more"
        )
    b_from_a = overview.copy()
    b_from_a[:, :2] *= a.scale / b.scale
    b_from_a[:, 2] /= b.scale
    side = round(cell_um / READ_MPP)
    step = side if stride_um is None else max(1, round(stride_um / READ_MPP))
    cells = _cells(a, b, b_from_a, side, step)
    if len(cells) < 5:
        raise BadInputError(f"{a.name}: only {len(cells)} cells on tissue, 5 needed")
    return PairedCells(cells, cells @ b_from_a[:, :2].T + b_from_a[:, 2], side, overlap)


def read_section(path: Path, mpp: float | None = None) -> Section:
    """Read a section at 1 um per pixel; ``mpp`` overrides that of the file, 0.5 if unknown."""
    with open_slide(path) as slide:
        info = slide.info
        slide_mpp = mpp or isotropic_mpp(info.mpp_x, info.mpp_y) or ASSUMED_MPP
        size = (info.width_px, info.height_px)
        pixels = slide.read_scaled((0, 0), size, max(1.0, READ_MPP / slide_mpp))
    scale = min(1.0, _OVERVIEW_PX / max(pixels.shape[:2]))
    small = cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return Section(path.name, pixels, tissue_mask(np.asarray(small, np.uint8)), scale)


def tissue_mask(image: ImageU8) -> ImageU8:
    """Mask of the largest piece of tissue, (H, W) uint8, by the darkness of the red channel.

    Haematoxylin and dark eosin absorb red, a pink smear does not.
    """
    red = cv2.GaussianBlur(image[..., 0], (0, 0), max(image.shape[:2]) / 170)
    _, dark = cv2.threshold(red, 0, 255, cv2.THRESH_BINARY_INV + cv2.THRESH_OTSU)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(dark)
    if count < 2:
        raise EmptyRegionError("no tissue on the section: all of it is one shade")
    largest = 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
    outline, _ = cv2.findContours(
        (labels == largest).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
    )
    filled = np.zeros(red.shape, np.uint8)
    cv2.drawContours(filled, outline, -1, 255, cv2.FILLED)
    return filled


def align_masks(mask_a: ImageU8, mask_b: ImageU8) -> tuple[ArrayF64, float]:
    """Align outline a with outline b by an affine map.

    Returns:
        (2, 3) float64, pixels of a to pixels of b; and the overlap reached (intersection over
        union).
    """
    size = (mask_b.shape[1], mask_b.shape[0])
    centre_a, centre_b = _centre(mask_a), _centre(mask_b)
    scale = float(np.sqrt(int((mask_b > 0).sum()) / max(int((mask_a > 0).sum()), 1)))
    best, best_overlap = np.eye(2, 3), -1.0
    for turn in np.linspace(0, 2 * np.pi, _ANGLES, endpoint=False):
        linear = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        matrix = np.column_stack([linear, centre_b - linear @ centre_a])
        overlap = _overlap(_warp(mask_a, matrix, size), mask_b)
        if overlap > best_overlap:
            best, best_overlap = matrix, overlap
    refined = _refine(mask_a, mask_b, best)
    overlap = _overlap(_warp(mask_a, refined, size), mask_b)
    return (refined, overlap) if overlap > best_overlap else (best, best_overlap)


def _refine(mask_a: ImageU8, mask_b: ImageU8, start: ArrayF64) -> ArrayF64:
    soft_a, soft_b = (
        cv2.GaussianBlur(mask, (0, 0), max(mask.shape) / 60) for mask in (mask_a, mask_b)
    )
    full = np.vstack([start, [0, 0, 1]])
    # ECC wants the map from the template (b) to the image (a).
    guess = np.linalg.inv(full)[:2].astype(np.float32)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 200, 1e-6)
    try:
        _, affine = cv2.findTransformECC(soft_b, soft_a, guess, cv2.MOTION_AFFINE, stop)
    except cv2.error:
        return start
    back = np.vstack([np.asarray(affine, np.float64), [0, 0, 1]])
    return np.linalg.inv(back)[:2] if abs(np.linalg.det(back)) > 1e-6 else start


def _cells(a: Section, b: Section, b_from_a: ArrayF64, side: int, step: int) -> ArrayF64:
    """(N, 2) centres of cells that lie on tissue in both sections."""
    height, width = a.pixels.shape[:2]
    grid = np.stack(
        np.meshgrid(np.arange(side / 2, width, step), np.arange(side / 2, height, step)), axis=-1
    ).reshape(-1, 2)
    moved = grid @ b_from_a[:, :2].T + b_from_a[:, 2]
    inside = (_inside(a, grid, side) >= _MIN_INSIDE) & (_inside(b, moved, side) >= _MIN_INSIDE)
    return grid[inside]


def _inside(section: Section, centres: ArrayF64, side: int) -> ArrayF64:
    """Share of tissue in the square around each centre; 0 if it leaves the section."""
    share = np.zeros(len(centres))
    height, width = section.pixels.shape[:2]
    for row, (x, y) in enumerate(centres):
        left, top = x - side / 2, y - side / 2
        if left < 0 or top < 0 or left + side > width or top + side > height:
            continue
        x0, y0, x1, y1 = (round(v * section.scale) for v in (left, top, left + side, top + side))
        part = section.mask[y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)]
        share[row] = (part > 0).mean() if part.size else 0.0
    return share


def _centre(mask: ImageU8) -> ArrayF64:
    rows, columns = np.nonzero(mask)
    return np.array([columns.mean(), rows.mean()])


def _warp(mask: ImageU8, matrix: ArrayF64, size: tuple[int, int]) -> ImageU8:
    return np.asarray(cv2.warpAffine(mask, matrix, size), np.uint8)


def _overlap(mask_a: ImageU8, mask_b: ImageU8) -> float:
    a, b = mask_a > 127, mask_b > 127
    return float((a & b).sum() / max((a | b).sum(), 1))
