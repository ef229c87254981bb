"""Scores of a descriptor on held-out stills at the end of its training."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from ml.geometry import transform_points
from ml.keypoints.descriptors.registry import Descriptor
from ml.keypoints.match import match_descriptors
from ml.training.descriptors.views import (
    KeypointStill,
    StillViewConfig,
    other_light,
    random_transform,
)
from ml.types import ArrayF64, ImageU8

PE_PX = 5.0
"""Largest projection error of a right match (graph-ssl-endoscopic-matching, section 4.3)."""

MAX_STILLS = 12

FAMILIES: tuple[str, ...] = ("rotation", "translation", "scale", "blur", "viewpoint")

NNT_FIGURES = {"nnt_precision": "NNT precision, all", "nnt_score": "NNT score, all"}
"""Titles of the figures over all families, after the NN precision of each."""


def validate(
    descriptor: Descriptor, stills: Sequence[KeypointStill], *, seed: int = 7
) -> dict[str, dict[str, float]]:
    """Score nearest neighbours between stills and their views, every partner being present.

    At most ``MAX_STILLS`` are used, evenly spaced.

    Returns:
        By family and ``all``: ``precision`` (nearest neighbour within 5 px), ``nnt_precision`` and
        ``nnt_score`` at the threshold of the best F1.
    """
    chosen = np.unique(np.linspace(0, len(stills) - 1, min(MAX_STILLS, len(stills))).astype(int))
    rows_of_family: dict[str, list[np.ndarray]] = {family: [] for family in FAMILIES}
    for i in chosen:
        rng = np.random.default_rng((seed, int(i)))
        for family in FAMILIES:
            rows_of_family[family].append(_pair(descriptor, stills[int(i)], family, rng))
    pooled = {family: np.concatenate(rows) for family, rows in rows_of_family.items()}
    pooled["all"] = np.concatenate(list(pooled.values()))
    threshold = best_threshold(pooled["all"][:, 0], pooled["all"][:, 1] > 0)
    return {family: _scores(rows, threshold) for family, rows in pooled.items()}


def best_threshold(distance: np.ndarray, is_right: np.ndarray) -> float:
    """Distance below which matches are kept for the best F1 of precision and recall."""
    if not len(distance):
        return 0.0
    order = np.argsort(distance, kind="stable")
    right = np.cumsum(is_right[order])
    best = int(np.argmax(2 * right / (np.arange(1, len(order) + 1) + len(order))))
    return float(distance[order][best]) * (1 + 1e-6)


def _pair(
    descriptor: Descriptor, still: KeypointStill, family: str, rng: np.random.Generator
) -> np.ndarray:
    """(N, 2): distance of each key point's nearest neighbour, and whether it is right."""
    view, matrix = _view(still, family, rng)
    moved = transform_points(matrix, still.xy).astype(np.float32)
    height, width = still.grey.shape
    inside = (moved >= 0).all(axis=1) & (moved[:, 0] <= width - 1) & (moved[:, 1] <= height - 1)
    xy, moved = still.xy[inside], moved[inside]
    response = np.ones(len(xy), np.float32)
    pairs, distance = match_descriptors(
        descriptor.describe(still.grey, xy, response),
        descriptor.describe(view, moved, response),
        strategy="nn",
    )
    error = np.linalg.norm(moved[pairs[:, 0]] - moved[pairs[:, 1]], axis=1)
    return np.stack([distance, error <= PE_PX], axis=1)


def _view(still: KeypointStill, family: str, rng: np.random.Generator) -> tuple[ImageU8, ArrayF64]:
    height, width = still.grey.shape
    if family == "blur":
        config = StillViewConfig(gain=(1, 1), gamma=(1, 1), noise_sd=0)
        kernel = np.full((1, int(rng.choice((3, 5, 10, 15)))), 1.0)
        return np.asarray(cv2.filter2D(still.grey, -1, kernel / kernel.sum())), np.eye(3)
    field_of_family = {"rotation": "rotations_deg", "translation": "shifts_px", "scale": "scales"}
    config = StillViewConfig(combined=1.0, tilt=0.06 if family == "viewpoint" else 0.0)
    if family in field_of_family:
        still_values = {"rotations_deg": (0.0,), "shifts_px": (0.0,), "scales": (1.0,)}
        still_values[field_of_family[family]] = getattr(config, field_of_family[family])
        config = StillViewConfig(combined=1.0, tilt=0.0, **still_values)  # type: ignore[arg-type]
    matrix = random_transform(rng, (height, width), config)
    view = np.asarray(cv2.warpPerspective(still.grey, matrix, (width, height)), np.uint8)
    if family == "viewpoint":
        light = StillViewConfig(gain=(1, 1), gamma=(1, 1), blur_px=0, noise_sd=4.0)
        view = other_light(rng, view, light)
    return view, matrix


def _scores(rows: np.ndarray, threshold: float) -> dict[str, float]:
    is_match = rows[:, 0] < threshold
    right = rows[:, 1] > 0
    return {
        "precision": round(float(right.mean()), 4) if len(rows) else 0.0,
        "nnt_precision": round(float((right & is_match).sum() / max(is_match.sum(), 1)), 4),
        "nnt_score": round(float((right & is_match).sum() / max(len(rows), 1)), 4),
    }
