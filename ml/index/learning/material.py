"""What a metric is learned from and compared on: regions, their labels, patients and judgements."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, ShapeError
from ml.index.learning.judged import Judged, nothing_judged
from ml.types import ArrayBool, ArrayF32

ASIDE_SHARE = 0.3
"""Of the patients, kept aside to compare on: enough of them to tell, and most to learn from."""
ASIDE_LEAST = 5
"""Patients to compare on: of fewer all would gain by chance in more than one of 32 cases."""
LEARNED_LEAST = 2
"""Patients of a label, or with judgements of both kinds, to learn from: only two or more
can tell what sets a patient apart from what sets a label apart."""
MAP, AGREEMENT = "map_at_10", "agreement"
"""What the verdict goes by: labels, or where they do not suffice what people judged."""
TOO_LITTLE = "There is too little to learn from."
RULE = (
    f"{ASIDE_SHARE:.0%} of the patients, rounded up, are kept aside: those whose key has the "
    "smallest SHA-256. A patient is on one side only."
)


class TooLittleError(BadInputError):
    """There is not enough to learn from, or to compare on."""

    code = "too-little-data"


@dataclass(frozen=True, slots=True)
class Material:
    """Regions by row.

    Attributes:
        vectors: (N, D) float32. labels: (N,), "" for none. patients: (N,).
        judged: pairs of rows that people compared.
    """

    vectors: ArrayF32
    labels: npt.NDArray[np.str_]
    patients: npt.NDArray[np.str_]
    judged: Judged

    @classmethod
    def of(
        cls,
        vectors: ArrayF32,
        labels: Sequence[str],
        patients: Sequence[str],
        judged: Judged | None = None,
    ) -> Material:
        """Checked material.

        Raises:
            ShapeError: not one label and patient per vector.
        """
        if vectors.ndim != 2 or not len(vectors) == len(labels) == len(patients):
            raise ShapeError(
                "vectors",
                expected=f"({len(labels)}, D), one patient for each",
                actual=str(vectors.shape),
            )
        names, owners = np.asarray(labels, dtype=str), np.asarray(patients, dtype=str)
        return cls(vectors, names, owners, judged or nothing_judged())

    def part(self, rows: ArrayBool) -> Material:
        """Some of the regions (N,), and the pairs that lie among them."""
        own = (self.vectors[rows], self.labels[rows], self.patients[rows])
        return Material(*own, self.judged.of(rows))


def kept_aside(patients: npt.NDArray[np.str_]) -> ArrayBool:
    """(N,) regions of patients that are kept aside, by ``RULE``; the same patients each time."""
    names = sorted(set(patients.tolist()), key=lambda name: hashlib.sha256(name.encode()).digest())
    aside = set(names[: math.ceil(ASIDE_SHARE * len(names))])
    return np.array([name in aside for name in patients.tolist()], dtype=bool)


@dataclass(frozen=True, slots=True)
class Enough:
    """What there is against what learning takes.

    Attributes:
        patients: all. aside: patients kept aside to search with, by labels or judgements.
        labels: that enough patients have to learn from. judged: patients to learn judgements from.
        judges_by: ``map_at_10`` (labels) or ``agreement`` (judgements alone).
        lacking: what each way to learn needs and what was found; empty where one has enough.
    """

    patients: int
    aside: int
    labels: tuple[str, ...]
    judged: int
    judges_by: str = MAP
    lacking: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """What is missing, in words; empty where nothing is."""
        return " ".join((TOO_LITTLE, *self.lacking)) if self.lacking else ""


def enough(material: Material, aside: ArrayBool, *, aside_least: int = ASIDE_LEAST) -> Enough:
    """Whether a metric can be learned and compared; by labels, or else by judgements alone."""
    train = material.part(~aside)
    names = [name for name in np.unique(train.labels).tolist() if name]
    learned = tuple(
        name
        for name in names
        if len(np.unique(train.patients[train.labels == name])) >= LEARNED_LEAST
    )
    asked = np.flatnonzero(aside & np.isin(material.labels, learned))
    by_labels = len(np.unique(material.patients[asked]))
    both = train.judged.asked_both_ways()
    judged = len(np.unique(train.patients[both]))
    own = [row for row in material.judged.asked_both_ways() if aside[row]]
    by_judged = len(np.unique(material.patients[own])) if own else 0
    total = len(np.unique(material.patients))
    if len(learned) >= 2 and by_labels >= aside_least:
        return Enough(total, by_labels, learned, judged)
    if judged >= LEARNED_LEAST and by_judged >= aside_least:
        return Enough(total, by_judged, learned, judged, AGREEMENT)
    needed = math.floor((aside_least - 1) / ASIDE_SHARE) + 1
    lacking = (
        f"Learning from labels needs two labels, each of at least {LEARNED_LEAST} patients to "
        f"learn from, and at least {aside_least} patients with one of these labels kept aside for "
        f"the comparison: {needed} patients or more in all. Found: {_count(total, 'patient')}, "
        f"{_count(len(learned), 'label')} of {LEARNED_LEAST} or more patients to learn from, and "
        f"{_count(by_labels, 'patient')} kept aside with one of these labels.",
        f"Learning from judgements alone needs {LEARNED_LEAST} patients to learn from and "
        f"{aside_least} kept aside whose regions were searched with and have results judged alike "
        f"and results judged unlike. Found: {judged} to learn from and {by_judged} kept aside.",
    )
    return Enough(total, max(by_labels, by_judged), learned, judged, lacking=lacking)


def require_enough(
    material: Material, aside: ArrayBool, *, aside_least: int = ASIDE_LEAST
) -> Enough:
    """As ``enough``.

    Raises:
        TooLittleError: a metric cannot be learned or compared; the message says what is missing.
    """
    found = enough(material, aside, aside_least=aside_least)
    if found.problem:
        raise TooLittleError(found.problem)
    return found


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
