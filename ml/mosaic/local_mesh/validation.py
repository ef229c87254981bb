"""Validation of meshes on pairs of frames that were not fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ml.mosaic.direct.residuals import TUKEY, spread_of
from ml.mosaic.local_mesh.cells import difference
from ml.mosaic.local_mesh.views import LevelPairs, straighten_views
from ml.types import ArrayBool, ArrayF32, ArrayF64

VALIDATION_STEP = 8
"""One pair in this many is held out; the others link the same frames."""

View = Callable[[int], tuple[ArrayF32, ArrayBool]]
"""A keyframe's row -> its straightened view, and where it is trusted."""


def split_pairs(
    pairs: Sequence[tuple[int, int]],
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Split pairs into those to fit and those held out, which are spread evenly over the sweep."""
    held_out = list(pairs[VALIDATION_STEP // 2 :: VALIDATION_STEP])
    excluded = set(held_out)
    return [pair for pair in pairs if pair not in excluded], held_out


def lowered_share(pairs: LevelPairs, meshes: ArrayF64) -> float:
    """Share by which meshes lower the squared grey differences; negative if they raise them.

    Each difference is limited to Tukey's bound.

    Args:
        pairs: the held-out pairs.
        meshes: (N, 9, 9, 2) by which the keyframes are straightened, px of the level.
    """
    flat, bent = (
        straighten_views(pairs.images, pairs.masks, mesh)
        for mesh in (np.zeros_like(meshes), meshes)
    )
    before = after = 0.0
    for plain, fitted in _energies(flat, bent, pairs.rows, pairs.b_from_a):
        before, after = before + plain, after + fitted
    return 1 - after / before if before else 0.0


def _energies(
    flat: View, bent: View, held_out: Sequence[tuple[int, int]], b_from_a: Sequence[ArrayF64]
) -> Iterator[tuple[float, float]]:
    for (i, j), matrix in zip(held_out, b_from_a, strict=True):
        plain, fitted = (difference(view(i), view(j), matrix) for view in (flat, bent))
        if plain is None or fitted is None:
            continue
        max_difference = TUKEY * spread_of(*plain)
        yield _energy(*plain, max_difference), _energy(*fitted, max_difference)


def _energy(residual: ArrayF32, both: ArrayBool, max_difference: float) -> float:
    return float(np.square(np.minimum(np.abs(residual[both]), max_difference)).mean())
