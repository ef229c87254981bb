"""Collages of pieces of tissue."""

from __future__ import annotations

import numpy as np

from ml.training.roi.arrangement.collages import (
    CELL_PX,
    GRID,
    collage,
    pieces_of,
    rearranged,
)
from ml.training.roi.patches.blocks import Block

CELLS = np.zeros((0, 2), np.int64)


def block(side: int, mpp: float) -> Block:
    return Block((np.zeros((side, side, 3), np.uint8),), mpp, CELLS)


def test_pieces_have_the_size_of_one_cell_or_of_four_at_1_um_per_pixel():
    blocks = [block(508, 0.5), block(508, 1.0), block(508, 0.8), block(508, 0.25)]
    assert [len(piece) for piece in pieces_of(blocks)] == [CELL_PX, 2 * CELL_PX, CELL_PX]


def test_all_pieces_are_used_before_one_repeats():
    pieces = [np.full((CELL_PX, CELL_PX, 3), value, np.uint8) for value in range(GRID * GRID)]
    pixels = collage(pieces, np.random.default_rng(0))
    assert sorted(pixels[::CELL_PX, ::CELL_PX, 0].ravel().tolist()) == list(range(GRID * GRID))


def test_rearranged_tissue_is_the_same_in_other_places():
    pixels = np.random.default_rng(0).integers(0, 255, (80, 80, 3), dtype=np.uint8)
    exchanged = rearranged(pixels, np.random.default_rng(1), grid=4)
    assert (exchanged != pixels).any()
    assert np.array_equal(np.sort(exchanged, axis=None), np.sort(pixels, axis=None))
