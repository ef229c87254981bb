"""Large regions stitched from small pieces of tissue of one patient."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from ml.training.roi.patches.blocks import Block
from ml.types import ImageU8

CELL_PX = 254
"""Side of a cell at 1 um per pixel: a block of the atlas at 0.5 um per pixel."""
GRID = 4
"""Cells along a side of a collage: about a millimetre."""
MIN_PIECES = 3
"""Least number of different pieces of tissue in a collage."""


def pieces_of(blocks: Sequence[Block]) -> list[ImageU8]:
    """Cut blocks to pieces of one cell or of 2 x 2 cells, (S, S, 3) uint8 at 1 um per pixel.

    Blocks that are smaller than a cell are left out; coarser ones than 1 um are not enlarged.
    """
    pieces = []
    for block in blocks:
        scale = min(block.mpp, 1.0)
        pixels = np.asarray(
            cv2.resize(block.mips[0], None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA),
            np.uint8,
        )
        shortest = min(pixels.shape[:2])
        side = 2 * CELL_PX if shortest >= 2 * CELL_PX else CELL_PX
        if shortest >= side:
            pieces.append(pixels[:side, :side])
    return pieces


def collage(pieces: Sequence[ImageU8], rng: np.random.Generator) -> ImageU8:
    """Stitch pieces at random places of a grid of 4 x 4 cells; all are used before one repeats.

    Args:
        pieces: See ``pieces_of``, at least one.
    Returns:
        (1016, 1016, 3) uint8 at 1 um per pixel.
    """
    out = np.zeros((GRID * CELL_PX, GRID * CELL_PX, 3), np.uint8)
    half = 2 * CELL_PX
    drawn: dict[bool, list[int]] = {True: [], False: []}
    members = {
        is_large: [i for i, piece in enumerate(pieces) if (len(piece) == half) is is_large]
        for is_large in (True, False)
    }

    def draw(*, is_large: bool) -> ImageU8:
        if not drawn[is_large]:
            drawn[is_large] = rng.permutation(members[is_large]).tolist()
        return pieces[drawn[is_large].pop()]

    large_share = len(members[True]) / len(pieces)
    for y in (0, half):
        for x in (0, half):
            if rng.random() < large_share:
                out[y : y + half, x : x + half] = draw(is_large=True)
                continue
            for dy in (0, CELL_PX):
                for dx in (0, CELL_PX):
                    top, left = y + dy, x + dx
                    out[top : top + CELL_PX, left : left + CELL_PX] = draw(is_large=False)
    return out


def rearranged(pixels: ImageU8, rng: np.random.Generator, *, grid: int = GRID) -> ImageU8:
    """Exchange the cells of a square grid over an image: the same tissue in another arrangement.

    Args:
        pixels: (H, W, 3) uint8; a remainder of the division by ``grid`` stays where it is.
        grid: Cells along a side.
    """
    height, width = pixels.shape[0] // grid, pixels.shape[1] // grid
    out = pixels.copy()
    order = rng.permutation(grid * grid)
    for target, source in enumerate(order.tolist()):
        (y, x), (v, u) = divmod(target, grid), divmod(source, grid)
        out[y * height : (y + 1) * height, x * width : (x + 1) * width] = pixels[
            v * height : (v + 1) * height, u * width : (u + 1) * width
        ]
    return out
