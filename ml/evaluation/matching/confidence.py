"""Would a learned confidence of each match do better than the agreement of its neighbours?

``match_images`` keeps of the mutual neighbours those that agree with their neighbours. The rival
is a logistic regression over what the descriptors and detectors say of a match, trained on one half
of the images and applied to the other, both ways, at the threshold that keeps as many right
matches as agreement does. Both see the same candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ml.evaluation.common.features import FeatureCache, MaskedImage
from ml.geometry import transform_points
from ml.keypoints import Descriptor
from ml.keypoints.features import ImageFeatures
from ml.keypoints.pipeline import MatchConfig, agreeing
from ml.types import ArrayBool, ArrayF64

RIDGE = 1e-3
"""On standardised features: keeps weights finite where the classes can be told apart."""

RIGHT_PX = 3.0
"""As in the hard protocol."""


@dataclass(frozen=True, slots=True)
class MutualNeighbours:
    """Mutual neighbours of one pair of images.

    Attributes:
        features: (K, 5), see ``_told``. is_right: (K,), within 3 px; all False for images with
            nothing in common. is_kept: (K,), what agreement keeps.
    """

    features: ArrayF64
    is_right: ArrayBool
    is_kept: ArrayBool


def candidates(
    a: MaskedImage,
    b: MaskedImage,
    descriptor: Descriptor,
    *,
    keypoints: int,
    cache: FeatureCache,
    H_b_from_a: ArrayF64 | None,
) -> MutualNeighbours:
    """The candidates of a pair; without a true map none is right."""
    one, other = (cache.extract(image, descriptor, keypoints) for image in (a, b))
    found = agreeing(one, other, MatchConfig())
    xy_a, xy_b = one.xy[found.pairs[:, 0]], other.xy[found.pairs[:, 1]]
    is_right = np.zeros(len(xy_a), np.bool_)
    if H_b_from_a is not None:
        is_right = np.linalg.norm(transform_points(H_b_from_a, xy_a) - xy_b, axis=1) <= RIGHT_PX
    return MutualNeighbours(_told(one, other, found.pairs, found.score), is_right, found.keep)


def compared(
    related: Sequence[MutualNeighbours],
    unrelated: Sequence[MutualNeighbours],
    halves: Sequence[int],
) -> dict[str, dict[str, float]]:
    """Both rules over all pairs.

    Args:
        halves: 0 or 1 for each of ``related``; ``unrelated`` are judged by what either half taught.
    Returns:
        ``agreement`` and ``confidence``: ``precision``, ``recall`` of the right candidates, and
        ``unrelated``, matches kept per pair of images with nothing in common.
    """
    kept = {0: _Tally(), 1: _Tally()}
    agreed = _Tally()
    for half in (0, 1):
        taught = [c for c, own in zip(related, halves, strict=True) if own != half]
        judged = [c for c, own in zip(related, halves, strict=True) if own == half]
        weights, middle, spread = _learned(taught)
        share = _recall(taught)
        scores = np.concatenate([_score(c, weights, middle, spread) for c in taught])
        right = np.concatenate([c.is_right for c in taught])
        threshold = float(np.quantile(scores[right], 1 - share)) if right.any() else np.inf
        for c in judged:
            agreed.add(c, c.is_kept)
            kept[half].add(c, _score(c, weights, middle, spread) >= threshold)
        for c in unrelated:
            kept[half].unrelated += (_score(c, weights, middle, spread) >= threshold).sum() / 2
    agreed.unrelated = sum(int(c.is_kept.sum()) for c in unrelated)
    both = kept[0].plus(kept[1])
    pairs = max(len(unrelated), 1)
    return {"agreement": agreed.rates(pairs), "confidence": both.rates(pairs)}


def confidence_line(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """One sentence per descriptor, for a card."""
    lines = []
    for name, rules in found.items():
        told = [
            f"{rule} keeps {r['recall']:.3f} of the right candidates at a precision of"
            f" {r['precision']:.4f} and finds {r['unrelated']:.1f} matches in a pair of unrelated"
            " images"
            for rule, r in rules.items()
        ]
        lines.append(f"`{name}`: {'; '.join(told)}.")
    return "\n".join(lines)


@dataclass(slots=True)
class _Tally:
    kept: float = 0
    right: float = 0
    kept_right: float = 0
    unrelated: float = 0

    def add(self, c: MutualNeighbours, keep: ArrayBool) -> None:
        self.kept += int(keep.sum())
        self.right += int(c.is_right.sum())
        self.kept_right += int((keep & c.is_right).sum())

    def plus(self, other: _Tally) -> _Tally:
        return _Tally(
            self.kept + other.kept,
            self.right + other.right,
            self.kept_right + other.kept_right,
            self.unrelated + other.unrelated,
        )

    def rates(self, unrelated_pairs: int) -> dict[str, float]:
        return {
            "precision": round(self.kept_right / max(self.kept, 1), 5),
            "recall": round(self.kept_right / max(self.right, 1), 4),
            "unrelated": round(float(self.unrelated) / unrelated_pairs, 2),
        }


def _told(
    one: ImageFeatures, other: ImageFeatures, pairs: np.ndarray, score: np.ndarray
) -> ArrayF64:
    """(K, 5): distance, how clearly it won, the weaker response's rank, sizes, their ratio."""
    a, b = one.keypoints, other.keypoints
    rows_a, rows_b = pairs[:, 0], pairs[:, 1]
    distance = np.linalg.norm(one.descriptors[rows_a] - other.descriptors[rows_b], axis=1)
    ranks = [np.argsort(np.argsort(k.response)) / max(len(k), 1) for k in (a, b)]
    size_a, size_b = (np.log(np.maximum(k.size_px[r], 1e-3)) for k, r in ((a, rows_a), (b, rows_b)))
    weaker = np.minimum(ranks[0][rows_a], ranks[1][rows_b])
    columns = (distance, score, weaker, size_a + size_b, np.abs(size_a - size_b))
    return np.stack(columns, axis=1).astype(np.float64)


def _learned(taught: Iterable[MutualNeighbours]) -> tuple[ArrayF64, ArrayF64, ArrayF64]:
    """Weights (the last one is the offset), and what standardises the features."""
    taught = list(taught)
    features = np.concatenate([c.features for c in taught])
    right = np.concatenate([c.is_right for c in taught]).astype(np.float64)
    middle, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    x = np.column_stack([(features - middle) / spread, np.ones(len(features))])

    def cost(w: ArrayF64) -> tuple[float, ArrayF64]:
        z = x @ w
        loss = np.logaddexp(0, z) - right * z
        slope = x.T @ (1 / (1 + np.exp(-z)) - right) / len(x)
        return float(loss.mean() + RIDGE * (w @ w) / 2), slope + RIDGE * w

    found = minimize(cost, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B")
    return np.asarray(found.x, np.float64), middle, spread


def _score(c: MutualNeighbours, weights: ArrayF64, middle: ArrayF64, spread: ArrayF64) -> ArrayF64:
    return np.asarray((c.features - middle) / spread @ weights[:-1] + weights[-1], np.float64)


def _recall(of: Iterable[MutualNeighbours]) -> float:
    tally = _Tally()
    for c in of:
        tally.add(c, c.is_kept)
    return tally.kept_right / max(tally.right, 1)
