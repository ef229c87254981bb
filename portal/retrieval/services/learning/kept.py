"""What was learned from a lab's archive, kept as an encoder of the lab."""

from __future__ import annotations

import hashlib
from dataclasses import asdict

from django.db.models import F

from ml.index.learning.archive import FromArchive
from ml.index.learning.weights import matrix_bytes
from portal.retrieval import selectors
from portal.retrieval.models import Encoder, Learning
from portal.retrieval.selectors import LabMaterial, SearchedBy, TrainingTold


def learning_save(
    *, learning: Learning, found: FromArchive, of: LabMaterial, before: SearchedBy
) -> Learning:
    """Keep what was learned, as an encoder of the lab where it is one. Inside ``effect()``.

    Args:
        before: what it was compared with.
    """
    weights = None if found.metric is None else matrix_bytes(found.metric.matrix, _about(learning))
    learning.compared_with = before.encoder
    return _save(learning, found, of, weights, learning.base.dim)


def learning_trained_save(
    *,
    learning: Learning,
    found: FromArchive,
    of: LabMaterial,
    before: SearchedBy,
    weights: bytes,
    dim: int,
    training: TrainingTold,
) -> Learning:
    """Keep a trained encoder, what it is worth, and how it was trained. Inside ``effect()``."""
    learning.compared_with, learning.training = before.encoder, training.as_json()
    return _save(learning, found, of, weights, dim)


def learning_trained_for(*, learning: Learning, seconds: float) -> None:
    """Add to the time that a training took, which its hours limit. Inside ``part()``."""
    Learning.everything.filter(pk=learning.pk).update(trained_s=F("trained_s") + seconds)


def _save(
    learning: Learning, found: FromArchive, of: LabMaterial, weights: bytes | None, dim: int
) -> Learning:
    learning.result = selectors.learning_result(found, of).as_json()
    learning.is_better = found.is_better
    if weights is not None and not found.is_identity:
        _encoder_make(learning, found, weights, dim)
    kept = ("result", "training", "is_better", "compared_with", "encoder", "weights", "updated_at")
    learning.save(update_fields=kept)
    return learning


def _about(learning: Learning) -> dict[str, str]:
    base = learning.base
    return {"base": f"{base.name}/{base.version}/{base.config_hash}", "lab": str(learning.lab_id)}


def _encoder_make(learning: Learning, found: FromArchive, weights: bytes, dim: int) -> None:
    base, lab = learning.base, learning.lab
    before = Encoder.objects.filter(lab=lab, kind=learning.kind).count()
    # The same regions learned from anew make the same map, which is another encoder all the same.
    identity = "/".join([str(learning.pk), *_about(learning).values()]).encode() + weights
    calibration = None
    if found.calibration is not None:
        said = asdict(found.calibration)
        calibration = {key: said[key] for key in ("probabilities", "distances")}
    learning.weights = weights
    learning.encoder = Encoder.objects.create(
        name=f"{base.name}-{lab.slug}"[:80],
        version=str(before + 1),
        config_hash=hashlib.sha256(identity).hexdigest(),
        dim=dim,
        kind=learning.kind,
        lab=lab,
        base=base,
        is_trained=found.metric is None,
        calibration=calibration,
    )
