"""Scores by hand: precision over classes, intervals over patients, chance, patient pull."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from ml.evaluation.retrieval.closeness import CalledClose
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.protocols import RetrievalOptions, other_patients_scores
from ml.evaluation.retrieval.suite.config import SuiteConfig
from ml.evaluation.retrieval.suite.scores import (
    called_close,
    chance,
    labels_alone_pull,
    patient_pull,
    query_precisions,
    task_scores,
)
from ml.evaluation.retrieval.suite.sets import label_task
from ml.evaluation.retrieval.suite.vectors import SetVectors
from ml.index.ranking.calibration import Calibration

CONFIG = SuiteConfig(bootstrap=200)


def record(patient, label):
    return RoiRecord(Path("x.png"), patient, label, None, None)


RECORDS = [
    record("A", "x"),
    record("A", "x"),
    record("B", "x"),
    record("B", "y"),
    record("C", "y"),
]
LINE = np.array([[0.0], [0.01], [5.0], [1.0], [1.1]], np.float32)


def test_precisions_are_those_of_the_honest_protocol():
    # 0 and 1: y(B) y(C) x(B), 1/3; 2: y(C) x(A) x(A), (1/2 + 2/3) / 2; 3 and 4: y first, 1
    precisions = query_precisions(label_task("t", RECORDS), LINE, LINE, 10)
    assert precisions == pytest.approx([1 / 3, 1 / 3, (1 / 2 + 2 / 3) / 2, 1, 1])
    honest = other_patients_scores(cdist(LINE, LINE), RECORDS, RetrievalOptions())
    assert precisions == pytest.approx(honest.ap)


def test_every_class_has_the_same_weight():
    scores = task_scores(label_task("t", RECORDS), SetVectors(LINE, (), 0.0), CONFIG).as_is
    x = (1 / 3 + 1 / 3 + 7 / 12) / 3
    assert scores.by_label == pytest.approx({"x": x, "y": 1.0})
    assert scores.score == pytest.approx((x + 1) / 2)
    assert scores.mean == pytest.approx((3 * x + 2) / 5)
    assert scores.interval[0] < scores.score < scores.interval[1]


def test_the_swapped_score_is_the_mean_of_draws_and_its_cost_a_percentage():
    # the gallery of the second draw answers every query wrongly: x and y have changed places
    wrong = np.array([[1.0], [1.1], [1.2], [0.0], [0.1]], np.float32)
    scores = task_scores(label_task("t", RECORDS), SetVectors(LINE, (LINE, wrong), 0.0), CONFIG)
    assert scores.swapped is not None and len(scores.swapped.draws) == 2
    assert scores.swapped.draws[0] == pytest.approx(scores.as_is.score)
    assert scores.swapped.score == pytest.approx(np.mean(scores.swapped.draws))
    assert scores.cost_percent == pytest.approx(
        100 * (scores.as_is.score - scores.swapped.score) / scores.as_is.score
    )
    assert scores.cost_percent > 0


def test_queries_retain_their_stains():
    gallery = LINE + 100  # a shift of the whole gallery would cancel, were the queries shifted too
    precisions = query_precisions(label_task("t", RECORDS), LINE, gallery, 10)
    # from below, every query sees the gallery in order of the line: y(B) y(C) x(B) for 0 and 1;
    # x x y for 2; x x y for 3; x x y x for 4
    assert precisions == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3, 1 / 3])


def test_chance_is_the_score_of_random_rankings():
    # one relevant region among two: first 1, second 1/2
    records = [record("A", "x"), record("B", "x"), record("C", "y"), record("D", "y")]
    task = label_task("t", [*records])
    assert chance(task, CONFIG) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3, abs=0.03)


def test_patient_pull_is_the_share_of_nearest_hits_of_the_same_patient():
    # 0 and 1 find each other; 2 (B) finds 4 (C); 3 (B) finds 4; C has one region and is no query
    assert patient_pull(RECORDS, LINE) == pytest.approx(2 / 4)


def test_patient_pull_by_labels_is_the_share_of_the_patient_in_its_label():
    # 0 and 1: one of two others with x is of A; 2: none of two; 3 (y): none of one
    assert labels_alone_pull(RECORDS) == pytest.approx((1 / 2 + 1 / 2 + 0 + 0) / 4)


def test_shares_of_close_hits_equal_hand_worked_values():
    """Close is nearer than 2; the right answers are 5, 4.99, 4.99, .1 and .1 away."""
    calibration = Calibration.from_quantiles([0.001, 0.9], [2.0, 20.0])
    unrelated = np.array([[5.5]], np.float32)  # near the third region alone
    shares = called_close(label_task("t", RECORDS), LINE, unrelated, calibration)
    assert shares == CalledClose(found=2 / 5, unrelated=1 / 5)
