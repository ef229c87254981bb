"""Synthetic vectors that are clustered as real ones are."""

from __future__ import annotations

from pathlib import Path

import numpy as np

_GROUPS, _CLUSTERS, _SHAPES, _RANK = 40, 2_000, 64, 32
"""Organs, tissues, ways a tissue varies, and in how many directions: about as the default encoder's
vectors of real images, of which 450 had 0.26, 0.43 and 0.67 of their variance in 8, 16 and 32
directions, and a dimension of 12 close by."""
_NOISE, _SPREAD, _DECAY = 0.08, 1.6, -0.35
_CHUNK = 65_536


def clustered(count: int, dim: int, path: Path, *, seed: int = 1) -> np.ndarray:
    """``count`` unit vectors (N, dim) float32, mapped; PATH.clusters.npy (N,) is written too."""
    rng = np.random.default_rng(seed)
    groups = rng.standard_normal((_GROUPS, dim)).astype(np.float32) * 0.6
    centres = groups[rng.integers(0, _GROUPS, _CLUSTERS)]
    centres += rng.standard_normal((_CLUSTERS, dim)).astype(np.float32) * 0.5
    # A few tissues are common, most are rare.
    weight = rng.pareto(1.5, _CLUSTERS) + 0.2
    scale = (np.arange(1, _RANK + 1) ** _DECAY * _SPREAD).astype(np.float32)
    shapes = [
        (np.linalg.qr(rng.standard_normal((dim, _RANK)))[0].astype(np.float32) * scale).T
        for _ in range(_SHAPES)
    ]
    which = rng.choice(_CLUSTERS, count, p=weight / weight.sum()).astype(np.int32)
    np.save(path.with_suffix(".clusters.npy"), which)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(count, dim))
    for start in range(0, count, _CHUNK):
        part = which[start : start + _CHUNK]
        block = centres[part]
        factors = rng.standard_normal((len(part), _RANK)).astype(np.float32)
        for shape in range(_SHAPES):
            rows = np.flatnonzero(part % _SHAPES == shape)
            block[rows] += factors[rows] @ shapes[shape]
        block += rng.standard_normal(block.shape).astype(np.float32) * _NOISE
        out[start : start + _CHUNK] = block / np.linalg.norm(block, axis=1, keepdims=True)
    out.flush()
    return np.load(path, mmap_mode="r")
