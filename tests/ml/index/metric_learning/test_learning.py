"""Learning from an archive: split, requirements and evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load

from ml.errors import WeightsError
from ml.index.metric_learning.dataset import (
    AGREEMENT,
    MAP,
    RegionDataset,
    TooLittleError,
    check_sufficiency,
    held_out_mask,
)
from ml.index.metric_learning.judgements import Judgements
from ml.index.metric_learning.training import learn_from_archive
from ml.index.metric_learning.weights import matrix_bytes, matrix_of_bytes


def dataset(*, signal, seed=0, patients=20, each=6, dim=8, labelled=True, judged=False):
    """Two labels that differ in a weak direction, and patients that differ in a strong one."""
    rng = np.random.default_rng(seed)
    offset = 6 * rng.standard_normal(patients)
    kinds = np.tile(np.arange(each) % 2, patients)
    patient_of = np.repeat(np.arange(patients), each)
    vectors = rng.standard_normal((len(kinds), dim))
    vectors[:, 0] += offset[patient_of]
    vectors[:, 1] += signal * (-1.0) ** kinds
    pairs = None
    if judged:
        query = np.repeat(np.arange(len(kinds)), 6)
        other = rng.integers(0, len(kinds), len(query))
        other = np.where(patient_of[other] == patient_of[query], (other + each) % len(kinds), other)
        pairs = Judgements(query, other, kinds[query] == kinds[other])
    labels = [f"label {kind}" if labelled else "" for kind in kinds]
    return RegionDataset.create(
        vectors.astype(np.float32), labels, [f"patient {patient}" for patient in patient_of], pairs
    )


def test_the_split_by_patient_is_deterministic():
    made = dataset(signal=1.0)
    is_test = held_out_mask(made.patients)
    assert not set(made.patients[is_test]) & set(made.patients[~is_test])
    assert len(set(made.patients[is_test])) == 6  # three tenths of twenty
    order = np.random.default_rng(1).permutation(len(is_test))
    assert (held_out_mask(made.patients[order]) == is_test[order]).all()


def test_learnable_labels_give_a_better_metric():
    learning = learn_from_archive(dataset(signal=1.5))
    measure = learning.comparison.measures[0]
    assert (learning.comparison.measure, measure.name) == (MAP, MAP)
    assert learning.is_better
    assert 0 < measure.low < measure.gain < measure.high
    assert measure.gain == pytest.approx(measure.new - measure.old)
    assert (measure.patients, learning.comparison.test_patients, learning.learned_patients) == (
        6,
        6,
        14,
    )
    assert learning.calibration is not None
    for change in learning.comparison.labels:
        assert change.better + change.worse + change.same == change.regions == 18
        assert change.better > change.worse


def test_examples_are_of_test_patients_and_exclude_their_regions():
    made = dataset(signal=1.5)
    examples = learn_from_archive(made).comparison.examples
    is_test = held_out_mask(made.patients)
    assert len(examples) == 6
    assert [example.gain for example in examples] == sorted(
        (example.gain for example in examples), reverse=True
    )
    assert len({made.patients[example.row] for example in examples}) == len(examples)
    for example in examples:
        assert is_test[example.row]
        assert len(example.old) == len(example.new) == 5
        assert made.patients[example.row] not in made.patients[[*example.old, *example.new]]
    first = examples[0]
    away = np.linalg.norm(made.vectors - made.vectors[first.row], axis=1)
    away[made.patients == made.patients[first.row]] = np.inf
    assert first.old == tuple(np.argsort(away)[:5])


def test_random_labels_give_no_better_metric():
    verdicts = [learn_from_archive(dataset(signal=0.0, seed=seed)).is_better for seed in range(12)]
    assert sum(verdicts) <= 1  # an interval of 95 % may err once in forty


def test_a_metric_is_learned_from_judgements_without_labels():
    learning = learn_from_archive(dataset(signal=2.0, labelled=False, judged=True))
    assert learning.comparison.measure == AGREEMENT
    assert [measure.name for measure in learning.comparison.measures] == [AGREEMENT]
    assert learning.comparison.labels == ()
    assert learning.is_better
    assert learning.comparison.measures[0].new > learning.comparison.measures[0].old + 0.1


def test_random_judgements_give_no_better_metric():
    made = dataset(signal=0.0, labelled=False, judged=True)
    assert not learn_from_archive(made).is_better


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (dataset(signal=1.0, patients=12), "Found: 12 patients, 2 labels"),
        (dataset(signal=1.0, each=1), "Found: 20 patients, 1 label of 2"),
        (dataset(signal=1.0, patients=1), "Found: 1 patient, 0 labels"),
        (dataset(signal=1.0, labelled=False), "Found: 0 to learn from and 0 kept aside"),
    ],
)
def test_too_little_data_raises_an_error_with_the_counts(made, words):
    with pytest.raises(TooLittleError, match="14 patients") as caught:
        learn_from_archive(made)
    assert words in str(caught.value)
    assert check_sufficiency(made, held_out_mask(made.patients)).problem == str(caught.value)


def test_progress_reports_each_phase_and_can_stop():
    phases = []
    learn_from_archive(
        dataset(signal=1.0), progress=lambda done, total, phase: phases.append(phase)
    )
    assert set(phases) == {"learning", "comparing"}

    class StopError(Exception):
        pass

    def stop(done, total, phase):
        if phase == "comparing":
            raise StopError

    with pytest.raises(StopError):
        learn_from_archive(dataset(signal=1.0), progress=stop)


def test_weights_round_trip_and_damaged_ones_raise_an_error():
    matrix = np.random.default_rng(0).standard_normal((4, 4))
    data = matrix_bytes(matrix, {"name": "x"})
    assert (load(data)["matrix"] == matrix.astype(np.float32)).all()  # as the library reads it
    assert (matrix_of_bytes(data, 4) == matrix.astype(np.float32)).all()
    for bad, dim in ((data[:-3], 4), (b"nothing", 4), (data, 5)):
        with pytest.raises(WeightsError):
            matrix_of_bytes(bad, dim)
    with pytest.raises(WeightsError):
        matrix_of_bytes(matrix_bytes(np.full((4, 4), np.nan), {}), 4)
