"""Pairs of keyframes compared for the local fit: one after the other, or many at once on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ml.keypoints.device import accelerator
from ml.mosaic.local_cells import Cells, cells_of_pair
from ml.mosaic.local_gain import lowered_share, share_of
from ml.mosaic.local_views import LevelPairs, straightened
from ml.types import ArrayF64


def cells_of_pairs(pairs: LevelPairs, meshes: ArrayF64) -> Iterator[Cells | None]:
    """Of each pair what ``cells_of_pair`` finds, on a GPU where there is one.

    Args:
        meshes: (N, 9, 9, 2) by which the keyframes are straightened, px of the level.
    """
    compute = accelerator()
    if compute is not None:
        from ml.mosaic.device_local import cells_on

        yield from cells_on(compute, pairs, meshes)
        return
    view = straightened(pairs.images, pairs.masks, meshes)
    for (i, j), way in zip(pairs.rows, pairs.b_from_a, strict=True):
        yield cells_of_pair(view(i), view(j), way)


def lowered_share_of_pairs(pairs: LevelPairs, meshes: ArrayF64) -> float:
    """See ``lowered_share``; on a GPU where there is one. ``meshes`` as in ``cells_of_pairs``."""
    plain = np.zeros_like(meshes)
    compute = accelerator()
    if compute is not None:
        from ml.mosaic.device_local import energies_on

        return share_of(energies_on(compute, pairs, plain, meshes))
    flat, bent = (straightened(pairs.images, pairs.masks, own) for own in (plain, meshes))
    return lowered_share(flat, bent, pairs.rows, pairs.b_from_a)
