"""Decomposition of the similarity of two regions into pairs of patches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayBool, ArrayF32, ArrayF64

PAIRS = 8
"""Default number of pairs, as more lines between two images cannot be distinguished."""
_MIN_DISTANCE = 0.35
"""Smallest distance of the centres of two selected patches, relative to their side."""


@dataclass(frozen=True, slots=True)
class Vertices:
    """Contributions of the patches of a region to its vector.

    Attributes:
        rows: (N, D) float32, contributions; their mean is the vector of the region.
        boxes_l0: (N, 4) float64, left, top, right, bottom of the patches in level-0 pixels.
        colours: (B,) float32, see ``colour.colour_histogram``.
        is_normalised: The patches were normalised to the target slide.
        stain_note: Reason if normalisation was configured but not possible.
    """

    rows: ArrayF32
    boxes_l0: ArrayF64
    colours: ArrayF32
    is_normalised: bool = False
    stain_note: str = ""

    @property
    def vector(self) -> ArrayF64:
        """Vector (D,) of the region."""
        return np.asarray(self.rows.astype(np.float64).mean(axis=0))


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of similar patches.

    Attributes:
        a, b: Index of the patch in each region.
        contribution: Contribution to the similarity, which is the sum over all pairs.
        share: Share of the sum of all positive contributions.
    """

    a: int
    b: int
    contribution: float
    share: float


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """Decomposition of the similarity of two regions.

    Attributes:
        similarity: Cosine of the two vectors.
        distance: Euclidean distance of the two vectors.
        contributions_a, contributions_b: (N,) and (M,) float64, contributions of the patches of
            each region to the similarity, which is their sum.
        pairs: Best pairs first, without overlapping patches.
    """

    similarity: float
    distance: float
    contributions_a: ArrayF64
    contributions_b: ArrayF64
    pairs: tuple[Pair, ...]

    def half_from(self) -> tuple[float, float]:
        """Smallest share of the patches of each region with half of its contributions."""
        return _half_from(self.contributions_a), _half_from(self.contributions_b)


def explain_pair(a: Vertices, b: Vertices, *, max_pairs: int = PAIRS) -> PairExplanation:
    """Decompose the similarity of two regions into terms of pairs of patches.

    The vector of a region is the mean of the rows of its patches, so the product of two vectors is
    the mean of the products of all pairs of rows. Contributions to the cosine are exact, as both
    norms are those of the regions. They are not the change of the similarity without a patch, which
    would change mean and norm. A row is the output of the encoder for a patch, after whitening and
    clipping (``RoiGcn.vertices``). Rows of the context part depend on a patch and its neighbours;
    power normalisation is a factor of all rows of a region. For unit vectors, the squared distance
    is two minus twice the similarity.

    Args:
        a, b: Two regions by one encoder.
        max_pairs: Largest number of pairs.
    Raises:
        ShapeError: Rows of different lengths, or another number of boxes than rows.
    """
    _check(a, b)
    vector_a, vector_b = a.vector, b.vector
    norms = max(float(np.linalg.norm(vector_a) * np.linalg.norm(vector_b)), 1e-12)
    terms = a.rows.astype(np.float64) @ b.rows.astype(np.float64).T
    terms /= norms * terms.size
    positive = float(terms[terms > 0].sum())
    best = _best_pairs(terms, a.boxes_l0, b.boxes_l0, max_pairs)
    return PairExplanation(
        similarity=float(terms.sum()),
        distance=float(np.linalg.norm(vector_a - vector_b)),
        contributions_a=terms.sum(axis=1),
        contributions_b=terms.sum(axis=0),
        pairs=tuple(Pair(i, j, float(terms[i, j]), terms[i, j] / positive) for i, j in best),
    )


def _best_pairs(
    terms: ArrayF64, boxes_a: ArrayF64, boxes_b: ArrayF64, max_pairs: int
) -> list[tuple[int, int]]:
    """Greedy selection of the pairs with the largest terms, without overlapping patches."""
    free = terms.copy()
    close_a, close_b = _too_close(boxes_a), _too_close(boxes_b)
    pairs: list[tuple[int, int]] = []
    while len(pairs) < max_pairs:
        i, j = np.unravel_index(int(free.argmax()), free.shape)
        if free[i, j] <= 0:
            break
        pairs.append((int(i), int(j)))
        free[close_a[i]] = -np.inf
        free[:, close_b[j]] = -np.inf
    return pairs


def _too_close(boxes: ArrayF64) -> ArrayBool:
    """Mask (N, N) bool of patches that are too close to each other to be distinguished."""
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    side = float((boxes[:, 2:] - boxes[:, :2]).mean())
    distance = np.linalg.norm(middle[:, None] - middle[None], axis=2)
    return np.asarray(distance < _MIN_DISTANCE * side) | np.eye(len(boxes), dtype=bool)


def _half_from(adds: ArrayF64) -> float:
    best = np.sort(np.maximum(adds, 0))[::-1]
    if not best.sum():
        return 1.0
    needed = int(np.searchsorted(np.cumsum(best), best.sum() / 2)) + 1
    return needed / len(adds)


def _check(a: Vertices, b: Vertices) -> None:
    for vertices in (a, b):
        if (
            vertices.rows.ndim != 2
            or not len(vertices.rows)
            or vertices.boxes_l0.shape != (len(vertices.rows), 4)
        ):
            raise ShapeError(
                "vertices",
                expected="rows (N, D) and boxes (N, 4), N > 0",
                actual=f"{vertices.rows.shape}, {vertices.boxes_l0.shape}",
            )
    if a.rows.shape[1] != b.rows.shape[1]:
        raise ShapeError(
            "vertices",
            expected="rows of one encoder",
            actual=f"{a.rows.shape[1]} and {b.rows.shape[1]} long",
        )
