"""A quick look at a descriptor on held-out stills; ``evaluate matching`` has the last word."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol, cast

import cv2
import numpy as np

from ml.geometry import transform_points
from ml.keypoints import Descriptor
from ml.keypoints.detect import take
from ml.keypoints.match import match_descriptors
from ml.keypoints.projection import projected
from ml.training.descriptors.views import (
    KeypointStill,
    StillViewConfig,
    other_light,
    random_transform,
)
from ml.types import ArrayF32, ArrayF64, ArrayI64, ImageU8

PE_PX = 5.0
"""Projection error up to which a match is right (graph-ssl-endoscopic-matching, section 4.3)."""

FAR_PX = 64.0
"""Half the side of a window: wrong neighbours beyond it are of another part of the image."""

FAMILIES: tuple[str, ...] = ("rotation", "translation", "scale", "blur", "viewpoint")

NNT_FIGURES = {"nnt_precision": "NNT precision, all", "nnt_score": "NNT score, all"}
"""Columns over all families, beside the NN precision of each."""


class PairMatching(Protocol):
    """What compares two images at once: no descriptor of its own for each point."""

    def nearest(
        self, a: ImageU8, xy_a: ArrayF32, b: ImageU8, xy_b: ArrayF32
    ) -> tuple[ArrayI64, ArrayF32]:
        """(N, 2) rows of each point of a and its partner in b; (N,), how far they are apart."""


def validate(
    descriptor: Descriptor | PairMatching,
    stills: Sequence[KeypointStill],
    *,
    most: int = 12,
    seed: int = 7,
    carried: bool = False,
) -> dict[str, dict[str, float]]:
    """Nearest neighbours between stills and their views, every partner being present.

    Args:
        most: stills looked at, evenly spaced.
        carried: tell the descriptor how large and how turned each key point is in either image,
            the best form of a hand-crafted one.
    Returns:
        by family and ``all``: ``precision`` (nearest neighbour within 5 px), ``exact`` (it is the
        partner itself), ``nnt_precision`` and ``nnt_score`` at the threshold of the best F1,
        ``far_wrong`` (of the wrong neighbours, the share beyond 64 px; 0 if none is wrong).
    """
    chosen = np.unique(np.linspace(0, len(stills) - 1, min(most, len(stills))).astype(int))
    found: dict[str, list[np.ndarray]] = {family: [] for family in FAMILIES}
    for i in chosen:
        rng = np.random.default_rng((seed, int(i)))
        for family in FAMILIES:
            found[family].append(_pair(descriptor, stills[int(i)], family, rng, carried=carried))
    pooled = {family: np.concatenate(rows) for family, rows in found.items()}
    pooled["all"] = np.concatenate(list(pooled.values()))
    threshold = best_threshold(pooled["all"][:, 0], pooled["all"][:, 1] > 0)
    return {family: _scores(rows, threshold) for family, rows in pooled.items()}


def best_threshold(distance: np.ndarray, is_right: np.ndarray) -> float:
    """The distance below which matches are kept for the best F1 of precision and recall."""
    if not len(distance):
        return 0.0
    order = np.argsort(distance, kind="stable")
    right = np.cumsum(is_right[order])
    best = int(np.argmax(2 * right / (np.arange(1, len(order) + 1) + len(order))))
    return float(distance[order][best]) * (1 + 1e-6)


def with_shuffled_positions(descriptor: Any, *, seed: int) -> Descriptor | None:
    """A descriptor that is given the positions of other key points, with the patches unchanged.

    Every call permutes anew, so that two images share no position. None for descriptors that do not
    look at where points are: only those with a graph over the key points (``graph``) do.
    """
    graph = getattr(descriptor, "graph", None)
    if graph is None:
        return None
    shuffled: Any = copy.copy(descriptor)
    shuffled.name = f"{descriptor.name} shuffled"
    shuffled.graph = _ShuffledGraph(graph, np.random.default_rng(seed))
    return cast(Descriptor, shuffled)


class _ShuffledGraph:
    """A graph network whose second argument, (N, ...) positions, is permuted first."""

    def __init__(self, graph: Any, rng: np.random.Generator) -> None:
        self.config = graph.config
        self._graph, self._rng = graph, rng

    def __call__(self, vectors: Any, positions: Any) -> Any:
        return self._graph(vectors, positions[self._rng.permutation(len(positions))])


def _pair(
    descriptor: Descriptor | PairMatching,
    still: KeypointStill,
    family: str,
    rng: np.random.Generator,
    *,
    carried: bool,
) -> np.ndarray:
    """(N, 4): distance, right, exact, far of each key point's nearest neighbour."""
    view, matrix = _view(still, family, rng)
    moved = transform_points(matrix, still.xy).astype(np.float32)
    height, width = still.grey.shape
    inside = (moved >= 0).all(axis=1) & (moved[:, 0] <= width - 1) & (moved[:, 1] <= height - 1)
    xy, moved = still.xy[inside], moved[inside]
    if hasattr(descriptor, "nearest"):
        pairs, distance = descriptor.nearest(still.grey, xy, view, moved)
    elif carried:
        points = take(still.keypoints, inside)
        pairs, distance = match_descriptors(
            descriptor.describe_keypoints(still.grey, points),
            descriptor.describe_keypoints(view, projected(points, matrix, moved)),
            strategy="nn",
        )
    else:
        response = np.ones(len(xy), np.float32)
        pairs, distance = match_descriptors(
            descriptor.describe(still.grey, xy, response),
            descriptor.describe(view, moved, response),
            strategy="nn",
        )
    error = np.linalg.norm(moved[pairs[:, 0]] - moved[pairs[:, 1]], axis=1)
    is_exact = pairs[:, 0] == pairs[:, 1]
    return np.stack([distance, error <= PE_PX, is_exact, error > FAR_PX], axis=1)


def _view(still: KeypointStill, family: str, rng: np.random.Generator) -> tuple[ImageU8, ArrayF64]:
    height, width = still.grey.shape
    if family == "blur":
        config = StillViewConfig(gain=(1, 1), gamma=(1, 1), noise_sd=0)
        kernel = np.full((1, int(rng.choice((3, 5, 10, 15)))), 1.0)
        return np.asarray(cv2.filter2D(still.grey, -1, kernel / kernel.sum())), np.eye(3)
    one = {"rotation": "rotations_deg", "translation": "shifts_px", "scale": "scales"}
    config = StillViewConfig(combined=1.0, tilt=0.06 if family == "viewpoint" else 0.0)
    if family in one:
        still_values = {"rotations_deg": (0.0,), "shifts_px": (0.0,), "scales": (1.0,)}
        still_values[one[family]] = getattr(config, one[family])
        config = StillViewConfig(combined=1.0, tilt=0.0, **still_values)  # type: ignore[arg-type]
    matrix = random_transform(rng, (height, width), config)
    view = np.asarray(cv2.warpPerspective(still.grey, matrix, (width, height)), np.uint8)
    if family == "viewpoint":
        light = StillViewConfig(gain=(1, 1), gamma=(1, 1), blur_px=0, noise_sd=4.0)
        view = other_light(rng, view, light)
    return view, matrix


def _scores(rows: np.ndarray, threshold: float) -> dict[str, float]:
    kept = rows[:, 0] < threshold
    right = rows[:, 1] > 0
    return {
        "precision": round(float(right.mean()), 4) if len(rows) else 0.0,
        "exact": round(float(rows[:, 2].mean()), 4) if len(rows) else 0.0,
        "far_wrong": round(float(rows[:, 3].sum() / max((~right).sum(), 1)), 4),
        "nnt_precision": round(float((right & kept).sum() / max(kept.sum(), 1)), 4),
        "nnt_score": round(float((right & kept).sum() / max(len(rows), 1)), 4),
    }
