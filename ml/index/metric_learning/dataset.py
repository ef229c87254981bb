"""Training data of a metric: regions with their labels, patients and judgements."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ml.errors import BadInputError, ShapeError
from ml.index.metric_learning.judgements import Judgements, no_judgements
from ml.types import ArrayBool, ArrayF32

TEST_SHARE = 0.3
"""Share of patients held out for testing."""
MIN_TEST_PATIENTS = 5
"""Smallest number of test patients: with fewer, all improve by chance in more than 1 of 32."""
MIN_TRAINING_PATIENTS = 2
"""Smallest number of training patients of a label, or with judgements of both kinds: a single one
cannot separate the effect of the patient from that of the label."""
MAP, AGREEMENT = "map_at_10", "agreement"
"""Evaluation measures: by labels, or by judgements if there are too few labels."""
TOO_LITTLE = "There is too little to learn from."
RULE = (
    f"{TEST_SHARE:.0%} of the patients, rounded up, are kept aside: those whose key has the "
    "smallest SHA-256. A patient is on one side only."
)


class TooLittleError(BadInputError):
    """Too little data to train or to test."""

    code = "too-little-data"


@dataclass(frozen=True, slots=True)
class RegionDataset:
    """Vectors, labels and patients of N regions, and judgements of pairs of them.

    Attributes:
        vectors: (N, D) float32.
        labels: (N,) str, "" for none.
        patients: (N,) str.
        judged: Judgements, by row.
    """

    vectors: ArrayF32
    labels: npt.NDArray[np.str_]
    patients: npt.NDArray[np.str_]
    judged: Judgements

    @classmethod
    def create(
        cls,
        vectors: ArrayF32,
        labels: Sequence[str],
        patients: Sequence[str],
        judged: Judgements | None = None,
    ) -> RegionDataset:
        """Create a dataset from checked input.

        Raises:
            ShapeError: Not one label and patient per vector.
        """
        if vectors.ndim != 2 or not len(vectors) == len(labels) == len(patients):
            raise ShapeError(
                "vectors",
                expected=f"({len(labels)}, D), one patient for each",
                actual=str(vectors.shape),
            )
        names, patient_names = np.asarray(labels, dtype=str), np.asarray(patients, dtype=str)
        return cls(vectors, names, patient_names, judged or no_judgements())

    def subset(self, rows: ArrayBool) -> RegionDataset:
        """The regions of ``rows`` (N,) bool, and the judgements among them."""
        parts = (self.vectors[rows], self.labels[rows], self.patients[rows])
        return RegionDataset(*parts, self.judged.subset(rows))


def held_out_mask(patients: npt.NDArray[np.str_]) -> ArrayBool:
    """Mask (N,) bool of the regions of test patients by ``RULE``; deterministic."""
    names = sorted(set(patients.tolist()), key=lambda name: hashlib.sha256(name.encode()).digest())
    test = set(names[: math.ceil(TEST_SHARE * len(names))])
    return np.array([name in test for name in patients.tolist()], dtype=bool)


@dataclass(frozen=True, slots=True)
class DataSufficiency:
    """Available data, compared with the requirements of training.

    Attributes:
        patients: Number of patients.
        test_patients: Number of test patients with queries, by labels or judgements.
        labels: Labels with enough training patients.
        judged: Number of training patients with judgements of both kinds.
        measure: ``map_at_10`` (labels) or ``agreement`` (judgements only).
        missing: Requirements of each way to learn, and the data found; empty if one has enough.
    """

    patients: int
    test_patients: int
    labels: tuple[str, ...]
    judged: int
    measure: str = MAP
    missing: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """Missing data, in words; empty if there is enough."""
        return " ".join((TOO_LITTLE, *self.missing)) if self.missing else ""


def check_sufficiency(
    dataset: RegionDataset, is_test: ArrayBool, *, min_test_patients: int = MIN_TEST_PATIENTS
) -> DataSufficiency:
    """Check whether a metric can be trained and tested, by labels or else by judgements."""
    train = dataset.subset(~is_test)
    names = [name for name in np.unique(train.labels).tolist() if name]
    trainable = tuple(
        name
        for name in names
        if len(np.unique(train.patients[train.labels == name])) >= MIN_TRAINING_PATIENTS
    )
    query_rows = np.flatnonzero(is_test & np.isin(dataset.labels, trainable))
    by_labels = len(np.unique(dataset.patients[query_rows]))
    both = train.judged.rows_judged_both_ways()
    judged = len(np.unique(train.patients[both]))
    judged_rows = [row for row in dataset.judged.rows_judged_both_ways() if is_test[row]]
    by_judged = len(np.unique(dataset.patients[judged_rows])) if judged_rows else 0
    total = len(np.unique(dataset.patients))
    if len(trainable) >= 2 and by_labels >= min_test_patients:
        return DataSufficiency(total, by_labels, trainable, judged)
    if judged >= MIN_TRAINING_PATIENTS and by_judged >= min_test_patients:
        return DataSufficiency(total, by_judged, trainable, judged, AGREEMENT)
    needed = math.floor((min_test_patients - 1) / TEST_SHARE) + 1
    missing = (
        "Learning from labels needs two labels, each of at least "
        f"{MIN_TRAINING_PATIENTS} patients to learn from, and at least {min_test_patients} "
        "patients with one of these labels kept aside for the comparison: "
        f"{needed} patients or more in all. Found: {_count(total, 'patient')}, "
        f"{_count(len(trainable), 'label')} of {MIN_TRAINING_PATIENTS} or more patients to learn "
        f"from, and {_count(by_labels, 'patient')} kept aside with one of these labels.",
        f"Learning from judgements alone needs {MIN_TRAINING_PATIENTS} patients to learn from and "
        f"{min_test_patients} kept aside whose regions were searched with and have results judged "
        f"alike and results judged unlike. Found: {judged} to learn from and {by_judged} kept "
        "aside.",
    )
    return DataSufficiency(total, max(by_labels, by_judged), trainable, judged, missing=missing)


def require_sufficient_data(
    dataset: RegionDataset, is_test: ArrayBool, *, min_test_patients: int = MIN_TEST_PATIENTS
) -> DataSufficiency:
    """Require enough data.

    Raises:
        TooLittleError: A metric cannot be trained or tested; the message says what is missing.
    """
    sufficiency = check_sufficiency(dataset, is_test, min_test_patients=min_test_patients)
    if sufficiency.problem:
        raise TooLittleError(sufficiency.problem)
    return sufficiency


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
