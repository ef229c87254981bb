"""Whether meshes are worth having: judged by pairs of frames that did not shape them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ml.mosaic.differences import TUKEY, spread_of
from ml.mosaic.local_cells import difference
from ml.mosaic.local_views import LevelPairs, straightened
from ml.types import ArrayBool, ArrayF32, ArrayF64

JUDGE_EVERY = 8
"""One pair in this many is not fitted but judges: the others hold the same frames."""

View = Callable[[int], tuple[ArrayF32, ArrayBool]]
"""A keyframe's row -> its straightened view, and where it is trusted."""


def parted(pairs: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs that are fitted, and those that judge, evenly over the sweep."""
    judging = list(pairs[JUDGE_EVERY // 2 :: JUDGE_EVERY])
    kept = set(judging)
    return [pair for pair in pairs if pair not in kept], judging


def lowered_share(pairs: LevelPairs, meshes: ArrayF64) -> float:
    """Share by which meshes lower the squared grey differences; negative if they raise them.

    Differences beyond what belongs to the same tissue count as that much and no more.

    Args:
        pairs: Pairs that judge.
        meshes: (N, 9, 9, 2) by which the keyframes are straightened, px of the level.
    """
    flat, bent = (
        straightened(pairs.images, pairs.masks, mesh) for mesh in (np.zeros_like(meshes), meshes)
    )
    before = after = 0.0
    for plain, fitted in _energies(flat, bent, pairs.rows, pairs.b_from_a):
        before, after = before + plain, after + fitted
    return 1 - after / before if before else 0.0


def _energies(
    flat: View, bent: View, judging: Sequence[tuple[int, int]], b_from_a: Sequence[ArrayF64]
) -> Iterator[tuple[float, float]]:
    for (i, j), matrix in zip(judging, b_from_a, strict=True):
        plain, fitted = (difference(view(i), view(j), matrix) for view in (flat, bent))
        if plain is None or fitted is None:
            continue
        most = TUKEY * spread_of(*plain)
        yield _energy(*plain, most), _energy(*fitted, most)


def _energy(lack: ArrayF32, both: ArrayBool, most: float) -> float:
    return float(np.square(np.minimum(np.abs(lack[both]), most)).mean())
