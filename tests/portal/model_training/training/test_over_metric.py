"""An encoder trained while a metric is in use: compared with that, put in its place, and back."""

from __future__ import annotations

import numpy as np
import pytest

from ml.index.metric_learning import training as learning_from
from ml.index.metric_learning.metric import LearnedMetric
from portal.core.errors import ConflictError
from portal.embeddings.models import Embedding, Encoder
from portal.model_training.models import Learning
from portal.model_training.selectors.learnings import learning_get
from portal.model_training.selectors.results import LearningResult
from portal.model_training.services.learnings import learning_promote, learning_roll_back
from tests.portal.model_training.archives import drawn, learned
from tests.portal.model_training.training.conftest import PATIENTS, request_training, searched


def read(manager, learning):
    return learning_get(manager, learning.pk)


def taken(world, manager, learning):
    """Put in use, taken to be better: so few regions and steps prove nothing."""
    Learning.objects.filter(pk=learning.pk).update(is_better=True)
    learning_promote(learning=learning, user=manager)
    return read(manager, learning)


def embedded_by(roi):
    return set(Embedding.objects.filter(roi=roi).values_list("encoder", flat=True))


def measures(learning):
    return LearningResult.from_json(learning.result).measures


@pytest.fixture
def metric(archive, manager, monkeypatch):
    """In use: it hears one number of the base's vectors, so its figures are other than theirs."""

    def learnt(vectors, *_, **__):
        matrix = np.zeros((vectors.shape[1], vectors.shape[1]))
        matrix[0, 0] = 1.0
        return LearnedMetric(matrix, "one number", 1.0, 0.0, 1.0, 0.0)

    monkeypatch.setattr(learning_from, "learn_metric", learnt)
    learning = learned(archive, manager)
    taken(archive, manager, learning)
    archive.run_jobs()
    return read(manager, learning)


@pytest.mark.endurance
def test_a_trained_encoder_replaces_a_metric_in_use_and_is_rolled_back(archive, metric, manager):
    assert (metric.use, metric.compared_with) == ("yes", metric.base)
    query, base = archive.made[0][0], metric.base
    before = searched(manager, query)
    assert before.query.encoder == metric.encoder

    trained = request_training(archive, manager)
    archive.run_jobs()
    trained = read(manager, trained)
    assert (trained.base, trained.compared_with) == (base, metric.encoder)
    old = [measure.old for measure in measures(trained)]
    assert old == pytest.approx([measure.new for measure in measures(metric)], abs=1e-6)
    assert old != pytest.approx(
        [measure.old for measure in measures(metric)], abs=1e-3
    )  # the base's
    assert searched(manager, query).query.encoder == metric.encoder

    trained = taken(archive, manager, trained)
    assert (read(manager, metric).use, trained.use) == ("yes", "preparing")
    between = searched(manager, query)
    assert between.query.encoder == metric.encoder
    assert [hit.distance for hit in between.hits] == [hit.distance for hit in before.hits]
    (early, _), lab_encoders = drawn(archive, PATIENTS), {metric.encoder_id, trained.encoder_id}
    archive.run_jobs()
    assert (read(manager, metric).use, read(manager, trained).use) == ("no", "yes")
    assert searched(manager, query).query.encoder == trained.encoder
    assert embedded_by(early) == {
        base.pk,
        *lab_encoders,
    }  # both had to be kept up when it was drawn
    assert Encoder.objects.filter(lab=archive.lab, is_default=True).count() == 1
    (late, _) = drawn(archive, PATIENTS + 1)
    archive.run_jobs()
    assert embedded_by(late) == {base.pk, trained.encoder_id}
    assert late.pk in {hit.roi.pk for hit in searched(manager, query).hits}

    learning_roll_back(learning=trained, user=manager)
    assert (read(manager, metric).use, read(manager, trained).use) == ("preparing", "no")
    back = searched(manager, query)
    assert back.query.encoder == base  # the metric lacks what was drawn since; the base does not
    assert late.pk in {hit.roi.pk for hit in back.hits}
    archive.run_jobs()
    assert read(manager, metric).use == "yes"
    again = searched(manager, query)
    assert again.query.encoder == metric.encoder
    assert late.pk in {hit.roi.pk for hit in again.hits}
    first = {hit.roi.pk: hit.distance for hit in before.hits}
    assert first.items() <= {hit.roi.pk: hit.distance for hit in again.hits}.items()
    learning_roll_back(learning=metric, user=manager)
    assert searched(manager, query).query.encoder == base
    with pytest.raises(ConflictError, match=f"compared with {metric}, but .* now use {base}"):
        taken(archive, manager, trained)
    assert not Encoder.objects.filter(lab=archive.lab, is_next=True).exists()
