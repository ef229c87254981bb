"""Store a learned model as an encoder of the lab."""

from __future__ import annotations

import hashlib
from dataclasses import asdict

from django.db.models import F

from ml.index.metric_learning.training import LearningOutcome
from ml.index.metric_learning.weights import matrix_bytes
from portal.embeddings.models import Encoder
from portal.model_training.models import Learning
from portal.model_training.selectors.results import TrainingSummary, learning_result
from portal.model_training.selectors.training_data import SearchBaseline, TrainingData


def learning_metric_save(
    *, learning: Learning, outcome: LearningOutcome, data: TrainingData, baseline: SearchBaseline
) -> Learning:
    """Store the evaluation and, if there is one, the metric as an encoder. Call inside
    ``effect()``.

    Args:
        baseline: Vectors that it was compared with.
    """
    weights = (
        None if outcome.metric is None else matrix_bytes(outcome.metric.matrix, _origin(learning))
    )
    learning.compared_with = baseline.encoder
    return _save(learning, outcome, data, weights, learning.base.dim)


def learning_encoder_save(
    *,
    learning: Learning,
    outcome: LearningOutcome,
    data: TrainingData,
    baseline: SearchBaseline,
    weights: bytes,
    dim: int,
    training: TrainingSummary,
) -> Learning:
    """Store a trained encoder with its evaluation. Call inside ``effect()``."""
    learning.compared_with, learning.training = baseline.encoder, training.as_json()
    return _save(learning, outcome, data, weights, dim)


def training_time_add(*, learning: Learning, seconds: float) -> None:
    """Add to the training time, which is limited in hours. Call inside ``part()``."""
    Learning.all_objects.filter(pk=learning.pk).update(trained_s=F("trained_s") + seconds)


def _save(
    learning: Learning,
    outcome: LearningOutcome,
    data: TrainingData,
    weights: bytes | None,
    dim: int,
) -> Learning:
    learning.result = learning_result(outcome, data).as_json()
    learning.is_better = outcome.is_better
    if weights is not None and not outcome.is_identity:
        _create_encoder(learning, outcome, weights, dim)
    fields = (
        "result",
        "training",
        "is_better",
        "compared_with",
        "encoder",
        "weights",
        "updated_at",
    )
    learning.save(update_fields=fields)
    return learning


def _origin(learning: Learning) -> dict[str, str]:
    base = learning.base
    return {"base": f"{base.name}/{base.version}/{base.config_hash}", "lab": str(learning.lab_id)}


def _create_encoder(learning: Learning, outcome: LearningOutcome, weights: bytes, dim: int) -> None:
    base, lab = learning.base, learning.lab
    earlier = Encoder.objects.filter(lab=lab, kind=learning.kind).count()
    # Learning again from the same regions gives the same map, but a different encoder.
    identity = "/".join([str(learning.pk), *_origin(learning).values()]).encode() + weights
    calibration = None
    if outcome.calibration is not None:
        quantiles = asdict(outcome.calibration)
        calibration = {key: quantiles[key] for key in ("probabilities", "distances")}
    learning.weights = weights
    learning.encoder = Encoder.objects.create(
        name=f"{base.name}-{lab.slug}"[:80],
        version=str(earlier + 1),
        config_hash=hashlib.sha256(identity).hexdigest(),
        dim=dim,
        kind=learning.kind,
        lab=lab,
        base=base,
        is_trained=outcome.metric is None,
        calibration=calibration,
    )
