"""Judgements by people whether pairs of regions are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.types import ArrayBool, ArrayF64, ArrayI64


@dataclass(frozen=True, slots=True)
class Judgements:
    """Judged pairs of regions.

    Attributes:
        query, result: (P,) int64, rows of the query region and of the result.
        alike: (P,) bool, the judgement.
    """

    query: ArrayI64
    result: ArrayI64
    alike: ArrayBool

    def __len__(self) -> int:
        return len(self.query)

    def subset(self, rows: ArrayBool) -> Judgements:
        """Pairs with both regions in the mask ``rows`` (N,) bool, with renumbered rows."""
        new = np.cumsum(rows) - 1
        both = rows[self.query] & rows[self.result]
        return Judgements(new[self.query[both]], new[self.result[both]], self.alike[both])

    def rows_judged_both_ways(self) -> ArrayI64:
        """Ascending rows of the queries with results judged alike and results judged unlike."""
        return np.intersect1d(self.query[self.alike], self.query[~self.alike])

    def agreement(self, vectors: ArrayF64, is_query: ArrayBool) -> ArrayF64:
        """Agreement of distances with the judgements.

        Args:
            vectors: (N, D) float64.
            is_query: (N,) bool, the regions to evaluate.
        Returns:
            (N,) float64: for each row of ``rows_judged_both_ways``, the share of its pairs of an
            alike and an unlike result in which the alike one is nearer (ties count half); NaN for
            other rows.
        """
        out = np.full(len(vectors), np.nan)
        for row in self.rows_judged_both_ways():
            if not is_query[row]:
                continue
            pairs = self.query == row
            distance = np.linalg.norm(vectors[self.result[pairs]] - vectors[row], axis=1)
            near, far = distance[self.alike[pairs]], distance[~self.alike[pairs]]
            nearer = near[:, None] < far[None]
            tied = near[:, None] == far[None]
            out[row] = float((nearer + 0.5 * tied).mean())
        return out


def no_judgements() -> Judgements:
    """An empty set of judgements."""
    empty = np.empty(0, np.int64)
    return Judgements(empty, empty, np.empty(0, bool))
