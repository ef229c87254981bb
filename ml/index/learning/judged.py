"""What people said of pairs of regions: alike, or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.types import ArrayBool, ArrayF64, ArrayI64


@dataclass(frozen=True, slots=True)
class Judged:
    """Pairs of regions by their rows.

    Attributes:
        asked, other: (P,) int64, searched with and found. alike: (P,) bool, what was said of them.
    """

    asked: ArrayI64
    other: ArrayI64
    alike: ArrayBool

    def __len__(self) -> int:
        return len(self.asked)

    def of(self, rows: ArrayBool) -> Judged:
        """The pairs whose regions are both among these (N,), by their new rows."""
        new = np.cumsum(rows) - 1
        both = rows[self.asked] & rows[self.other]
        return Judged(new[self.asked[both]], new[self.other[both]], self.alike[both])

    def asked_both_ways(self) -> ArrayI64:
        """Ascending rows for which people called one region alike and another one not."""
        return np.intersect1d(self.asked[self.alike], self.asked[~self.alike])

    def agreement(self, vectors: ArrayF64, asks: ArrayBool) -> ArrayF64:
        """How well distances agree with people, for each row of ``asked_both_ways``.

        Args:
            vectors: (N, D). asks: (N,) the regions to answer for.
        Returns:
            (N,) the share of its pairs of an alike and an unlike region whose alike one is nearer,
            ties half; NaN for the others.
        """
        out = np.full(len(vectors), np.nan)
        for row in self.asked_both_ways():
            if not asks[row]:
                continue
            mine = self.asked == row
            away = np.linalg.norm(vectors[self.other[mine]] - vectors[row], axis=1)
            near, far = away[self.alike[mine]], away[~self.alike[mine]]
            nearer = near[:, None] < far[None]
            tied = near[:, None] == far[None]
            out[row] = float((nearer + 0.5 * tied).mean())
        return out


def nothing_judged() -> Judged:
    """No pairs."""
    none = np.empty(0, np.int64)
    return Judged(none, none, np.empty(0, bool))
