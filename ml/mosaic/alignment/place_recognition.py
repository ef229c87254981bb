"""Place recognition: loop keyframes that may show the same place, by their descriptors.

Source: Jegou et al. 2010 (VLAD), on words learned from the video itself, searched with FAISS.
"""

from __future__ import annotations

import faiss
import numpy as np

from ml.mosaic.registration.loop_keyframes import LoopKeyframeStore
from ml.types import ArrayF32

WORDS, DIM = 16, 48
"""Visual words, and principal axes kept of a descriptor: a vector of 768 numbers."""

TRAIN_ROWS = 20_000
"""Descriptors the words are learned from: over a thousand a word, and a second of work."""

SEED = 7
"""Seed of k-means: the same video gives the same words."""


def vlad_vectors(store: LoopKeyframeStore) -> ArrayF32:
    """(L, D) float32 of unit length, one row per loop keyframe in the store's order."""
    positions = store.positions
    share = max(1, TRAIN_ROWS // max(len(positions), 1))
    sample = np.concatenate([store.load(p).rows[:share] for p in positions])
    if len(sample) < 8 * WORDS:
        return np.zeros((len(positions), DIM * WORDS), np.float32)
    middle, axes = _axes(sample)
    words = _words(np.ascontiguousarray((sample - middle) @ axes))
    rows = [
        _vlad(np.asarray((store.load(p).rows - middle) @ axes, np.float32), words)
        for p in positions
    ]
    return np.stack(rows).astype(np.float32)


def similar_pairs(vectors: ArrayF32, *, count: int, min_distance: int) -> list[tuple[int, int]]:
    """Pairs (later, earlier) of similar rows whose indices differ by ``min_distance`` or more."""
    if len(vectors) <= min_distance or count < 1:
        return []
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    neighbour_count = min(len(vectors), count + 2 * min_distance + 1)
    _, nearest = index.search(vectors, neighbour_count)
    pairs = set()
    for row, neighbours in enumerate(nearest):
        distant = [int(other) for other in neighbours if abs(int(other) - row) >= min_distance]
        pairs |= {(max(row, other), min(row, other)) for other in distant[:count]}
    return sorted(pairs)


def _axes(sample: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
    """Mean (D,) and leading principal axes (D, DIM) of the descriptors."""
    middle = sample.mean(axis=0)
    centred = sample - middle
    _, vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    return middle, np.ascontiguousarray(vectors[:, ::-1][:, :DIM], np.float32)


def _words(sample: ArrayF32) -> ArrayF32:
    kmeans = faiss.Kmeans(
        sample.shape[1], WORDS, niter=10, seed=SEED, verbose=False, min_points_per_centroid=1
    )
    kmeans.train(sample)
    return np.asarray(kmeans.centroids, np.float32)


def _vlad(rows: ArrayF32, words: ArrayF32) -> ArrayF32:
    vector = np.zeros((WORDS, rows.shape[1]), np.float32)
    if len(rows):
        nearest = ((rows[:, None] - words[None]) ** 2).sum(axis=2).argmin(axis=1)
        np.add.at(vector, nearest, rows - words[nearest])
        vector /= np.maximum(np.linalg.norm(vector, axis=1, keepdims=True), 1e-9)
    flat = vector.ravel()
    return np.asarray(flat / max(float(np.linalg.norm(flat)), 1e-9), np.float32)
