"""What is lost when queries come from another laboratory's stain: a signal that needs no labels.

An encoder may be chosen by it where labelled development data is too small to be trusted. It does
not use the training's own augmentation: the stain is shifted here in the space of stain
concentrations, so that an encoder is not scored on the very changes it was trained with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from scipy.spatial.distance import cdist

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.metrics import reciprocal_ranks
from ml.evaluation.retrieval.protocols import QueryScores, RetrievalOptions, other_patients_scores
from ml.evaluation.retrieval.regions import Embedder, region_image
from ml.roi.stain import RUIFROK_HE, WHITE, optical_density
from ml.types import ArrayF32, ArrayF64, ImageU8, Progress, no_progress

_GAIN = 0.35
"""Largest log gain of a stain, a factor of 1.4."""

_TURN = 0.06
"""Deviation of each entry of a stain vector: it turns by some degrees."""

_OFFSET_OD = 0.02
"""Densest veil: a density that glass and mounting medium have."""

_LAMP = 0.03
"""Largest change of the light in a channel, as scanners differ in white balance."""


class ShiftScores(TypedDict):
    """mAP of clean and of shifted queries.

    ``map_shifted`` is the mean of the ``draws``, ``drop_percent`` of the clean score,
    ``p_at_1_self`` how often a shifted query is nearest to its own unshifted region.
    """

    map_clean: float
    map_shifted: float
    drop_percent: float
    draws: list[float]
    p_at_1_self: float


@dataclass(frozen=True, slots=True)
class ShiftedVectors:
    """The same regions as they are, (N, D), and under each draw of stain shifts."""

    clean: ArrayF32
    shifted: tuple[ArrayF32, ...]


def stain_shifted(image: ImageU8, rng: np.random.Generator, *, strength: float = 1.0) -> ImageU8:
    """The image as another laboratory might have stained and scanned it.

    Haematoxylin, eosin and the residual get another strength (log-uniform, a factor of 1.4 at
    most), other colours (their vectors turned by some degrees), a faint veil and another lamp.

    Args:
        image: (H, W, 3) uint8 RGB.
        rng: drawn from a fixed number of times, whatever the image.
        strength: 0 gives the image back, save what is brighter than ``WHITE``.
    """
    gain = np.exp(rng.uniform(-_GAIN, _GAIN, 3) * strength * (1, 1, 0.5))
    turn = rng.normal(0, _TURN, (3, 3)) * strength
    offset = rng.uniform(0, _OFFSET_OD, 3) * strength
    lamp = 1 + rng.uniform(-_LAMP, _LAMP, 3) * strength
    vectors = _with_residual(RUIFROK_HE)
    moved = np.maximum(vectors + turn, 0.0)
    moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-6)
    mixing = np.linalg.inv(vectors) @ np.diag(gain) @ (moved if strength else vectors)
    od = np.maximum(optical_density(image) @ mixing.astype(np.float32) + offset, 0)
    light = (WHITE + 1) * np.power(10.0, -od) * lamp - 1
    return np.asarray(np.clip(light + 0.5, 0, 255), np.uint8)


def shifted_vectors(
    encoder: Embedder,
    records: Sequence[RoiRecord],
    *,
    draws: int = 3,
    seed: int = 0,
    strength: float = 1.0,
    progress: Progress = no_progress,
) -> ShiftedVectors:
    """Embed each region as it is, and as ``draws`` other laboratories would have stained it."""
    rng = np.random.default_rng(seed)
    clean: list[ArrayF32] = []
    shifted: list[list[ArrayF32]] = [[] for _ in range(draws)]
    for done, record in enumerate(records, 1):
        region = region_image(record)
        clean.append(encoder.embed(region.pixels, region.polygon, region.mpp))
        for vectors in shifted:
            pixels = stain_shifted(region.pixels, rng, strength=strength)
            vectors.append(encoder.embed(pixels, region.polygon, region.mpp))
        progress(done, len(records), "stain shifts")
    return ShiftedVectors(np.stack(clean), tuple(np.stack(vectors) for vectors in shifted))


def shifted_scores(
    vectors: ShiftedVectors, records: Sequence[RoiRecord], options: RetrievalOptions
) -> ShiftScores:
    """mAP@K of other patients with clean queries, and with stain-shifted ones.

    The gallery stays as it is: what is measured is a query from another laboratory.
    """
    before = other_patients_scores(distances(vectors.clean, vectors.clean), records, options)
    apart = [distances(shifted, vectors.clean) for shifted in vectors.shifted]
    after = [other_patients_scores(distance, records, options) for distance in apart]
    own = [reciprocal_ranks(distance, np.arange(len(records))) for distance in apart]
    return _shift_summary(before, after, own)


def _with_residual(two: ArrayF64) -> ArrayF64:
    unit = two / np.linalg.norm(two, axis=1, keepdims=True)
    third = np.cross(unit[0], unit[1])
    third = np.abs(third) / np.linalg.norm(third)
    return np.vstack([unit, third])


def distances(queries: ArrayF32, gallery: ArrayF32) -> ArrayF64:
    """(Q, G) float64 Euclidean distances of rows."""
    return np.asarray(cdist(queries, gallery), np.float64)


def _shift_summary(
    before: QueryScores, after: Sequence[QueryScores], own: Sequence[ArrayF64]
) -> ShiftScores:
    clean = float(before.ap.mean())
    shifted = [float(scores.ap.mean()) for scores in after]
    mean = float(np.mean(shifted))
    return {
        "map_clean": clean,
        "map_shifted": mean,
        "drop_percent": 100 * (clean - mean) / clean if clean else 0.0,
        "draws": shifted,
        "p_at_1_self": float(np.mean([(ranks == 1).mean() for ranks in own])),
    }
