"""Proximity graph of the patches of a region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from ml.errors import EmptyRegionError, ShapeError
from ml.types import ArrayF32, ArrayF64, ArrayI64

EDGE_PX = 448.0
"""Twice the patch: section III-A of the retrieval paper."""


@dataclass(frozen=True, slots=True)
class RoiGraph:
    """Graph of a region.

    Attributes:
        x: (N, C) float32, features of the vertices.
        pos: (N, 2) float32, centres relative to the centre of the region, pixels of the encoder.
        edge_index: (2, M) int64, both directions of each edge, no self-loops (the GCN adds them).
    """

    x: ArrayF32
    pos: ArrayF32
    edge_index: ArrayI64

    def __len__(self) -> int:
        return int(self.x.shape[0])


def build_graph(x: ArrayF32, centre_px: ArrayF64, *, edge_px: float = EDGE_PX) -> RoiGraph:
    """Connect patches whose centres are at most ``edge_px`` apart.

    Args:
        x: (N, C) float32 features.
        centre_px: (N, 2) float64, centres in pixels of the encoder.
        edge_px: Largest length of an edge, inclusive.
    Raises:
        ShapeError: Different numbers of rows, or N is 0.
    Source: the retrieval paper, section III-A.
    """
    if x.ndim != 2 or centre_px.shape != (x.shape[0], 2) or x.shape[0] == 0:
        raise ShapeError(
            "vertices", expected="(N, C) and (N, 2), N > 0", actual=f"{x.shape}, {centre_px.shape}"
        )
    pairs = cKDTree(centre_px).query_pairs(edge_px, output_type="ndarray").astype(np.int64)
    pairs = pairs[np.lexsort(pairs.T[::-1])].reshape(-1, 2)
    edge_index = np.ascontiguousarray(np.concatenate([pairs, pairs[:, ::-1]]).T)
    middle = (centre_px.min(axis=0) + centre_px.max(axis=0)) / 2
    return RoiGraph(
        np.ascontiguousarray(x, dtype=np.float32),
        np.asarray(centre_px - middle, dtype=np.float32),
        edge_index,
    )


def tissue_graph(
    vectors: Sequence[ArrayF32 | None], centre_px: ArrayF64, *, edge_px: float = EDGE_PX
) -> tuple[RoiGraph, ArrayI64]:
    """Build the graph of the patches with tissue; return it and their indices.

    Args:
        vectors: Features (C,) of each patch, None without tissue.
    Raises:
        EmptyRegionError: No patch has tissue.
    """
    rows = np.array([i for i, vector in enumerate(vectors) if vector is not None], np.int64)
    if not rows.size:
        raise EmptyRegionError("the region holds no tissue: all of it is blank background")
    x = np.stack([vector for vector in vectors if vector is not None])
    return build_graph(x, centre_px[rows], edge_px=edge_px), rows
