"""Sets and their queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.suite.config import SetConfig
from ml.evaluation.retrieval.suite.sets import label_task, labelled_set, same_label


def record(patient, label):
    return RoiRecord(Path("x.png"), patient, label, None, None)


def test_hits_exclude_the_patient_of_the_query(data):
    task_set = labelled_set(SetConfig(name="dots", path="rois", tasks={"sizes": []}), data)
    patients = [item.patient for item in task_set.items]
    (task,) = task_set.tasks
    assert len(task.queries) == len(task_set.items) == 16
    for query in task.queries:
        assert patients[query.item] not in {patients[i] for i in query.gallery}
        assert len(query.gallery) == 12 and query.relevant.sum() == 6
        assert f"dots/{query.group}" == patients[query.item]


def test_a_query_without_a_correct_answer_is_counted_and_not_scored():
    task = label_task("t", [record("A", "x"), record("A", "x"), record("B", "y"), record("C", "y")])
    assert [query.item for query in task.queries] == [2, 3]
    assert task.unscored == 2
    with pytest.raises(BadInputError, match=r"t: .*query"):
        label_task("t", [record("A", "x"), record("A", "x"), record("B", "y"), record("B", "y")])


def test_groups_make_a_second_task_of_the_same_items(data):
    config = SetConfig(name="dots", path="rois", tasks={"a": [], "b": ["x=small", "y=large"]})
    task_set = labelled_set(config, data)
    assert [task.name for task in task_set.tasks] == ["a", "b"]
    assert {query.label for query in task_set.tasks[1].queries} == {"x", "y"}


def test_a_table_without_labels_raises_an_error(data):
    config = SetConfig(name="t", kind="table", path="tiles/index.csv", tasks={"a": []})
    with pytest.raises(BadInputError, match=r"0\.png has no label"):
        labelled_set(config, data)


def test_every_image_has_its_own_key(data):
    task_set = labelled_set(SetConfig(name="dots", path="rois", tasks={"sizes": []}), data)
    assert len({item.key for item in task_set.items}) == 16
    assert task_set.items[0].key.startswith("rois/0small0.png ")
    assert task_set.items[0].read().mpp is None


def test_same_label_regions_are_of_any_patient_and_exclude_the_query():
    items = same_label([record("A", "x"), record("A", "x"), record("B", "y"), record("B", "x")])
    assert {item: others.tolist() for item, others in items.items()} == {
        0: [1, 3],
        1: [0, 3],
        3: [0, 1],
    }
    assert all(others.dtype == np.int64 for others in items.values())
