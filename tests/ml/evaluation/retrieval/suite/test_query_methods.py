"""Query methods by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.suite import query_methods as module
from ml.evaluation.retrieval.suite.query_methods import QueryMethod, distances_of
from ml.evaluation.retrieval.suite.sets import SuiteQuery, Task, _with_labels, label_task
from ml.index.ranking.diffusion import DiffusionConfig


def order(vectors, query, query_method):
    count = len(vectors)
    stacked = np.array([*vectors, query], np.float32)
    suite_query = SuiteQuery(count, np.arange(count), np.ones(count, bool), "x", "A")
    task = Task("t", (suite_query,), 0)
    return np.argsort(distances_of(task, stacked, stacked, query_method)(suite_query)).tolist()


def test_an_expanded_query_follows_its_nearest_neighbour():
    gallery = [[0.8, 0.6], [0.3, 0.95], [0.6, -0.8]]
    assert order(gallery, [1.0, 0.0], QueryMethod()) == [0, 2, 1]
    # It moves to about (.92, .27): what lies beyond the neighbour comes before the other side.
    assert order(gallery, [1.0, 0.0], QueryMethod(expand=1)) == [0, 1, 2]


def test_a_diffused_query_follows_neighbours_of_neighbours():
    angle = np.radians([10, 12, 14, 16, 18, 40, 42, 44, 46, -43])
    gallery = np.stack([np.cos(angle), np.sin(angle)], axis=1).tolist()
    assert order(gallery, [1.0, 0.0], QueryMethod())[-1] == 8
    assert order(gallery, [1.0, 0.0], QueryMethod(diffuse=True))[-1] == 9


def test_the_direct_share_of_an_expanded_query_is_that_of_its_region():
    angle = np.radians([10, 12, 14, 16, 18, 40, 42, 44, 46, -5])
    gallery = np.stack([np.cos(angle), np.sin(angle)], axis=1).tolist()
    direct = DiffusionConfig(direct=100)
    orders = [
        order(
            gallery,
            [1.0, 0.0],
            QueryMethod(expand=3, diffuse=True, diffusion=direct, direct_expanded=of_expanded),
        )
        for of_expanded in (False, True)
    ]
    assert orders[0][0] == 9 != orders[1][0]


def records():
    return [
        RoiRecord(Path("x.png"), f"p{patient}", "ab"[number % 2], None, None)
        for patient in range(6)
        for number in range(4)
    ]


def test_a_metric_is_learned_for_each_patient_without_its_labels(monkeypatch):
    seen = []
    original = module.learn_metric

    def spied(vectors, labels, patients):
        seen.append((len(vectors), sorted(set(patients))))
        return original(vectors, labels, patients)

    monkeypatch.setattr(module, "learn_metric", spied)
    vectors = np.random.default_rng(0).standard_normal((24, 4)).astype(np.float32)
    task = _with_labels(label_task("t", records()), records())
    ask = distances_of(task, vectors, vectors, QueryMethod(learn=True))
    assert [len(ask(query)) for query in task.queries] == [20] * 24
    assert seen == [(20, [f"p{p}" for p in range(6) if p != patient]) for patient in range(6)]


def test_a_set_without_patients_is_queried_by_distance():
    vectors = np.random.default_rng(0).standard_normal((24, 4)).astype(np.float32)
    task = label_task("t", records())
    query = task.queries[0]
    plain = distances_of(task, vectors, vectors, QueryMethod())(query)
    assert np.array_equal(
        distances_of(task, vectors, vectors, QueryMethod(learn=True))(query), plain
    )


def test_with_too_few_patients_queries_go_by_distance():
    few = [RoiRecord(Path("x.png"), p, label, None, None) for p, label in ("Aa", "Ab", "Ba", "Bb")]
    vectors = np.array([[0.0], [5.0], [1.0], [2.0]], np.float32)
    task = _with_labels(label_task("t", few), few)
    assert distances_of(task, vectors, vectors, QueryMethod(learn=True))(
        task.queries[0]
    ).tolist() == [1.0, 2.0]
