"""Models learned from a lab's archive."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from portal.core.errors import NotFoundError
from portal.embeddings.models import Encoder
from portal.jobs.models import ENDED_STATES, Job
from portal.labs.models import User
from portal.model_training.models import Learning

LEARN_KIND, TRAIN_KIND = "metric_learn", "encoder_learn"


def learnings_of(user: User, lab_id: uuid.UUID | None = None) -> QuerySet[Learning]:
    """Models learned in the person's labs, or in one of them, newest first."""
    rows = Learning.objects.owned_by(user).select_related(
        "encoder", "base", "compared_with", "job", "user", "lab"
    )
    rows = rows.defer("weights")
    return rows if lab_id is None else rows.filter(lab_id=lab_id)


def learning_get(user: User, learning_id: uuid.UUID) -> Learning:
    """A learned model; ``NotFoundError`` if it is not visible."""
    learning = learnings_of(user).filter(pk=learning_id).first()
    if learning is None:
        raise NotFoundError("Nothing was learned under this id.")
    return learning


def learning_to_run(learning_id: uuid.UUID) -> Learning | None:
    """The row with its lab and base, or None (for tasks)."""
    rows = Learning.objects.select_related("lab", "base", "encoder", "user").defer("weights")
    learning: Learning | None = rows.filter(pk=learning_id).first()
    return learning


def learning_weights(encoder_id: uuid.UUID) -> bytes:
    """Safetensors file of a trained encoder; empty if it is deleted."""
    rows = Learning.all_objects.filter(encoder=encoder_id)
    return bytes(rows.values_list("weights", flat=True).first() or b"")


def learning_under_way(lab_id: uuid.UUID, kind: str) -> Learning | None:
    """Learning whose job has not ended."""
    rows = Learning.objects.select_related("job").filter(lab_id=lab_id, kind=kind)
    open_jobs = Job.objects.filter(kind__in=(LEARN_KIND, TRAIN_KIND)).exclude(
        state__in=ENDED_STATES
    )
    learning: Learning | None = rows.filter(job__in=open_jobs, result__isnull=True).first()
    return learning


def encoder_to_roll_back_to(learning: Learning) -> Encoder:
    """Encoder used after a rollback: the one compared with, or the base."""
    before = learning.compared_with
    is_ours = before is not None and before.base_id == learning.base_id
    return before if before is not None and is_ours else learning.base
