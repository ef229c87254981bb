"""Patient-disjoint folds: even, repeatable, with notes on what cannot be even."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.splits import SplitConfig, split_patients


def record(patient, label, image="x.png"):
    return RoiRecord(Path(image), patient, label, None, None)


def many(seed=0, patients=24):
    rng = np.random.default_rng(seed)
    return [
        record(f"P{p:02d}", str(rng.choice(["a", "b", "c"])), f"{p}-{s}.png")
        for p in range(patients)
        for s in range(1 + p % 2)
        for _ in range(int(rng.integers(1, 8)))
    ]


def test_every_patient_is_in_exactly_one_fold():
    records = many()
    folds = split_patients(records, SplitConfig(folds=4))
    together = list(itertools.chain(*folds.patients))
    assert sorted(together) == sorted({r.patient for r in records})
    assert folds.rois.sum() == len(records)


def test_shares_are_much_more_even_than_by_chance():
    records = many()
    folds = split_patients(records, SplitConfig(folds=4))
    by_chance = split_patients(records, SplitConfig(folds=4, generations=1, population=5))
    share = folds.rois / folds.rois.sum(axis=0)
    assert np.abs(share - 0.25).max() < 0.08
    assert folds.imbalance < 0.6 * by_chance.imbalance


def test_a_perfect_split_is_found():
    records = [record(f"{label}{i}", label) for label in "abc" for i in range(4)]
    assert split_patients(records, SplitConfig(folds=4)).imbalance == 0


def test_the_same_seed_gives_the_same_folds():
    records = many(1)
    first = split_patients(records, SplitConfig(seed=5))
    assert first.patients == split_patients(list(reversed(records)), SplitConfig(seed=5)).patients


def test_a_slide_counts_once_for_each_class_it_holds():
    records = [record("A", "x", "1"), record("A", "x", "1"), record("A", "y", "1")]
    records += [record("B", "x", "2"), record("B", "y", "3")]
    folds = split_patients(records, SplitConfig(folds=2))
    assert folds.slides.tolist() == [[1, 1], [1, 1]]


def test_fewer_patients_than_folds_raise_an_error():
    with pytest.raises(BadInputError, match=r"folds .*2"):
        split_patients([record("A", "x"), record("B", "x")])
    with pytest.raises(BadInputError, match="folds"):
        split_patients(many(), SplitConfig(folds=1))
