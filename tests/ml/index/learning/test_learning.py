"""Learning from an archive: the split, what it takes, the verdict where labels can be learned."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load

from ml.errors import WeightsError
from ml.index.learning.archive import learn_from_archive
from ml.index.learning.judged import Judged
from ml.index.learning.material import (
    AGREEMENT,
    MAP,
    Material,
    TooLittleError,
    enough,
    kept_aside,
)
from ml.index.learning.weights import matrix_bytes, matrix_of_bytes


def material(*, signal, seed=0, patients=20, each=6, dim=8, labelled=True, judged=False):
    """Two kinds of regions: a weak direction tells them apart, a strong one tells patients."""
    rng = np.random.default_rng(seed)
    own = 6 * rng.standard_normal(patients)
    kinds = np.tile(np.arange(each) % 2, patients)
    owners = np.repeat(np.arange(patients), each)
    vectors = rng.standard_normal((len(kinds), dim))
    vectors[:, 0] += own[owners]
    vectors[:, 1] += signal * (-1.0) ** kinds
    pairs = None
    if judged:
        asked = np.repeat(np.arange(len(kinds)), 6)
        other = rng.integers(0, len(kinds), len(asked))
        other = np.where(owners[other] == owners[asked], (other + each) % len(kinds), other)
        pairs = Judged(asked, other, kinds[asked] == kinds[other])
    labels = [f"label {kind}" if labelled else "" for kind in kinds]
    return Material.of(
        vectors.astype(np.float32), labels, [f"patient {one}" for one in owners], pairs
    )


def test_a_patient_is_on_one_side_only_and_on_the_same_each_time():
    made = material(signal=1.0)
    aside = kept_aside(made.patients)
    assert not set(made.patients[aside]) & set(made.patients[~aside])
    assert len(set(made.patients[aside])) == 6  # three tenths of twenty
    order = np.random.default_rng(1).permutation(len(aside))
    assert (kept_aside(made.patients[order]) == aside[order]).all()


def test_labels_that_can_be_learned_make_a_better_metric():
    found = learn_from_archive(material(signal=1.5))
    measure = found.comparison.measures[0]
    assert (found.comparison.judges_by, measure.name) == (MAP, MAP)
    assert found.is_better
    assert 0 < measure.low < measure.gain < measure.high
    assert measure.gain == pytest.approx(measure.new - measure.old)
    assert (measure.patients, found.comparison.kept_aside, found.learned_patients) == (6, 6, 14)
    assert found.calibration is not None
    for change in found.comparison.labels:
        assert change.better + change.worse + change.same == change.regions == 18
        assert change.better > change.worse


def test_examples_are_of_patients_kept_aside_and_show_other_patients_nearest():
    made = material(signal=1.5)
    examples = learn_from_archive(made).comparison.examples
    aside = kept_aside(made.patients)
    assert len(examples) == 6
    assert [one.gain for one in examples] == sorted((one.gain for one in examples), reverse=True)
    assert len({made.patients[one.row] for one in examples}) == len(examples)
    for one in examples:
        assert aside[one.row]
        assert len(one.old) == len(one.new) == 5
        assert made.patients[one.row] not in made.patients[[*one.old, *one.new]]
    first = examples[0]
    away = np.linalg.norm(made.vectors - made.vectors[first.row], axis=1)
    away[made.patients == made.patients[first.row]] = np.inf
    assert first.old == tuple(np.argsort(away)[:5])


def test_labels_that_vectors_do_not_know_are_not_called_better():
    verdicts = [learn_from_archive(material(signal=0.0, seed=seed)).is_better for seed in range(12)]
    assert sum(verdicts) <= 1  # an interval of 95 % may err once in forty


def test_judgements_alone_are_learned_from():
    found = learn_from_archive(material(signal=2.0, labelled=False, judged=True))
    assert found.comparison.judges_by == AGREEMENT
    assert [one.name for one in found.comparison.measures] == [AGREEMENT]
    assert found.comparison.labels == ()
    assert found.is_better
    assert found.comparison.measures[0].new > found.comparison.measures[0].old + 0.1


def test_judgements_that_say_nothing_are_not_called_better():
    made = material(signal=0.0, labelled=False, judged=True)
    assert not learn_from_archive(made).is_better


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (material(signal=1.0, patients=12), "Found: 12 patients, 2 labels"),
        (material(signal=1.0, each=1), "Found: 20 patients, 1 label of 2"),
        (material(signal=1.0, patients=1), "Found: 1 patient, 0 labels"),
        (material(signal=1.0, labelled=False), "Found: 0 to learn from and 0 kept aside"),
    ],
)
def test_too_little_is_refused_with_how_much_it_takes_and_how_much_there_is(made, words):
    with pytest.raises(TooLittleError, match="14 patients or more in all") as caught:
        learn_from_archive(made)
    assert words in str(caught.value)
    assert enough(made, kept_aside(made.patients)).problem == str(caught.value)


def test_it_is_told_of_each_phase_and_can_be_stopped():
    phases = []
    learn_from_archive(
        material(signal=1.0), progress=lambda done, total, phase: phases.append(phase)
    )
    assert set(phases) == {"learning", "comparing"}

    class StopError(Exception):
        pass

    def stop(done, total, phase):
        if phase == "comparing":
            raise StopError

    with pytest.raises(StopError):
        learn_from_archive(material(signal=1.0), progress=stop)


def test_weights_come_back_as_they_were_and_damaged_ones_are_refused():
    matrix = np.random.default_rng(0).standard_normal((4, 4))
    data = matrix_bytes(matrix, {"name": "x"})
    assert (load(data)["matrix"] == matrix.astype(np.float32)).all()  # as the library reads it
    assert (matrix_of_bytes(data, 4) == matrix.astype(np.float32)).all()
    for bad, dim in ((data[:-3], 4), (b"nothing", 4), (data, 5)):
        with pytest.raises(WeightsError):
            matrix_of_bytes(bad, dim)
    with pytest.raises(WeightsError):
        matrix_of_bytes(matrix_bytes(np.full((4, 4), np.nan), {}), 4)
