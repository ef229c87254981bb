"""The similarity of two regions, taken apart into pairs of their patches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.errors import ShapeError
from ml.types import ArrayBool, ArrayF32, ArrayF64

PAIRS = 8
"""Pairs that are named: more lines between two pictures cannot be told apart."""
_APART = 0.35
"""Patches overlap: the centres of two that are named are this share of a patch apart or more."""


@dataclass(frozen=True, slots=True)
class Vertices:
    """A region as the patches that its vector is made of.

    Attributes:
        rows: (N, D) float32, whose mean is the region's vector: what each patch gives to it.
        boxes_l0: (N, 4) float64, left, top, right, bottom of the patches in level-0 pixels.
        colours: (B,) float32, see ``colour.colour_histogram``.
        is_normalised: the patches were brought to the target slide's stain. stain_note: why not,
            where they should have been.
    """

    rows: ArrayF32
    boxes_l0: ArrayF64
    colours: ArrayF32
    is_normalised: bool = False
    stain_note: str = ""

    @property
    def vector(self) -> ArrayF64:
        """(D,) of the region."""
        return np.asarray(self.rows.astype(np.float64).mean(axis=0))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two patches that match.

    Attributes:
        a, b: which patch of either region.
        adds: to the similarity; all pairs of the two regions together add all of it.
        share: of all that speaks for it: of the sum of the pairs that add something.
    """

    a: int
    b: int
    adds: float
    share: float


@dataclass(frozen=True, slots=True)
class Explained:
    """Why two regions are as similar as they are.

    Attributes:
        similarity: cosine of the two vectors. distance: between them, as a search has it.
        adds_a: (N,) float64, what each patch of the first region adds to the similarity, which is
            their sum; below zero where it speaks against it. adds_b: (M,), of the second.
        pairs: the best first; each patch in one of them at most, and none close to another.
    """

    similarity: float
    distance: float
    adds_a: ArrayF64
    adds_b: ArrayF64
    pairs: tuple[Pair, ...]

    def half_from(self) -> tuple[float, float]:
        """The smallest share of each region's patches that adds half of all that speaks for it."""
        return _half_from(self.adds_a), _half_from(self.adds_b)


def explain_pair(a: Vertices, b: Vertices, *, most: int = PAIRS) -> Explained:
    """Take the similarity of two regions apart.

    A region's vector is the mean of its patches' rows, so that the product of two vectors is the
    mean of the products of all pairs of rows. That is exact, and so is what a patch adds to the
    cosine: the two lengths that it is divided by belong to the whole regions. What is not exact: a
    pair alone says what it adds between these two regions, not what would be left without it, since
    a region with fewer patches has another mean and another length.
    A row is what the encoder makes of a patch: whitening and cutting (``RoiGcn.vertices``) come
    before it. Rows of a graph's context part are of a patch and its neighbours; power normalisation
    is given to rows as a factor of their region. For vectors of unit length distances are exact
    as well: the squared distance is two minus twice the similarity.

    Args:
        a, b: two regions by one encoder.
        most: this many pairs are named.
    Raises:
        ShapeError: rows of different lengths, or another number of boxes than of rows.
    """
    _check(a, b)
    vector_a, vector_b = a.vector, b.vector
    lengths = max(float(np.linalg.norm(vector_a) * np.linalg.norm(vector_b)), 1e-12)
    terms = a.rows.astype(np.float64) @ b.rows.astype(np.float64).T
    terms /= lengths * terms.size
    speaking_for = float(terms[terms > 0].sum())
    chosen = _best_apart(terms, a.boxes_l0, b.boxes_l0, most)
    return Explained(
        similarity=float(terms.sum()),
        distance=float(np.linalg.norm(vector_a - vector_b)),
        adds_a=terms.sum(axis=1),
        adds_b=terms.sum(axis=0),
        pairs=tuple(Pair(i, j, float(terms[i, j]), terms[i, j] / speaking_for) for i, j in chosen),
    )


def _best_apart(
    terms: ArrayF64, boxes_a: ArrayF64, boxes_b: ArrayF64, most: int
) -> list[tuple[int, int]]:
    """The pairs that add most, one after the other, each clear of those before it."""
    free = terms.copy()
    near_a, near_b = _near(boxes_a), _near(boxes_b)
    found: list[tuple[int, int]] = []
    while len(found) < most:
        i, j = np.unravel_index(int(free.argmax()), free.shape)
        if free[i, j] <= 0:
            break
        found.append((int(i), int(j)))
        free[near_a[i]] = -np.inf
        free[:, near_b[j]] = -np.inf
    return found


def _near(boxes: ArrayF64) -> ArrayBool:
    """(N, N): which patches are too close to each other to be told apart."""
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    side = float((boxes[:, 2:] - boxes[:, :2]).mean())
    away = np.linalg.norm(middle[:, None] - middle[None], axis=2)
    return np.asarray(away < _APART * side) | np.eye(len(boxes), dtype=bool)


def _half_from(adds: ArrayF64) -> float:
    best = np.sort(np.maximum(adds, 0))[::-1]
    if not best.sum():
        return 1.0
    needed = int(np.searchsorted(np.cumsum(best), best.sum() / 2)) + 1
    return needed / len(adds)


def _check(a: Vertices, b: Vertices) -> None:
    for one in (a, b):
        if one.rows.ndim != 2 or not len(one.rows) or one.boxes_l0.shape != (len(one.rows), 4):
            raise ShapeError(
                "vertices",
                expected="rows (N, D) and boxes (N, 4), N > 0",
                actual=f"{one.rows.shape}, {one.boxes_l0.shape}",
            )
    if a.rows.shape[1] != b.rows.shape[1]:
        raise ShapeError(
            "vertices",
            expected="rows of one encoder",
            actual=f"{a.rows.shape[1]} and {b.rows.shape[1]} long",
        )
