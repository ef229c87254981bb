"""Start learning; activate and roll back learned models."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from portal.archive.models import Modality
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.encoders import encoder_default, encoder_next, encoder_of_lab
from portal.embeddings.services.lab_encoders import archive_embed_submit
from portal.embeddings.services.mapped_vectors import lab_encoder_switch_if_complete
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.model_training.models import Learning, LearningMethod
from portal.model_training.selectors.learnings import (
    LEARN_KIND,
    TRAIN_KIND,
    encoder_to_roll_back_to,
    learning_get,
    learning_under_way,
)
from portal.model_training.selectors.training_data import training_data_check

DEFAULT_STEPS, MAX_STEPS = 600, 20_000
"""Default and largest number of training steps; the maximum is almost six times the shipped
encoder's."""
MIN_STEPS = 20  # the first checkpoint
DEFAULT_HOURS, MAX_HOURS = 8.0, 72.0
"""Default and largest time limit: a night, and a long weekend."""


@dataclass(frozen=True, slots=True)
class TrainingLimits:
    """Limits of an encoder's training; the first one reached ends it.

    Raises:
        InvalidInputError: A limit is out of bounds.
    """

    steps: int = DEFAULT_STEPS
    hours: float = DEFAULT_HOURS

    def __post_init__(self) -> None:
        if not MIN_STEPS <= self.steps <= MAX_STEPS:
            raise InvalidInputError(
                f"steps: expected {MIN_STEPS} to {MAX_STEPS:,}, got {self.steps}."
            )
        if not 0 < self.hours <= MAX_HOURS:
            raise InvalidInputError(
                f"hours: expected more than 0 and at most {MAX_HOURS:g}, got {self.hours:g}."
            )


def learning_submit(
    *, lab: Lab, kind: Modality, user: User, training: TrainingLimits | None = None
) -> Learning:
    """Submit the learning from a lab's archive, or return the one that is running.

    Args:
        training: Limits of an encoder's training; None for a metric.
    Raises:
        ForbiddenError: The user is less than a manager of the lab.
        ConflictError: Nothing is embedded yet, the shared encoder is being replaced, or there is
            too little training data (the message says how much is needed and how much there is).
    """
    require_role(user, lab.pk, at_least=Role.MANAGER)
    base = encoder_default(kind)
    if base is None:
        raise ConflictError("No region is prepared for searches yet.", code="too-little-data")
    if encoder_next(kind) is not None:
        raise ConflictError(
            "The portal is changing its search model. Learn from the archive once that is done.",
            code="encoder-changing",
        )
    _, sufficiency = training_data_check(lab.pk, base)
    if sufficiency.problem:
        raise ConflictError(sufficiency.problem, code="too-little-data")
    with transaction.atomic():
        Lab.objects.select_for_update().get(pk=lab.pk)  # one learning for simultaneous requests
        running = learning_under_way(lab.pk, kind)
        if running is not None:
            return running
        learning = Learning.objects.create(
            lab=lab,
            kind=kind,
            user=user,
            base=base,
            method=LearningMethod.ENCODER if training else LearningMethod.METRIC,
            steps=training.steps if training else None,
            hours=training.hours if training else None,
        )
        learning.job = job_submit(
            kind=TRAIN_KIND if training else LEARN_KIND,
            args={"learning_id": str(learning.pk)},
            lab=lab,
            user=user,
            target_name=str(learning),
        )
        learning.save(update_fields=["job", "updated_at"])
        _emit("learning.requested", learning, user)
    return learning


def learning_promote(*, learning: Learning, user: User) -> Job:
    """Let the lab's searches use the model, after it has embedded the lab's archive.

    Until then they keep their encoder. Returns the job that embeds it.

    Raises:
        ForbiddenError: The user is less than a manager of the lab.
        ConflictError: The model is not better by its criterion, nothing was learned, it is in use
            already, the shared encoder is being or was replaced, or the lab's searches no longer
            use the encoder that it was compared with.
    """
    require_role(user, learning.lab_id, at_least=Role.MANAGER)
    with transaction.atomic():
        Encoder.objects.select_for_update().get(pk=learning.base_id)  # new vectors wait
        learning = _reload(learning)
        encoder = _promotable(learning)
        lab_encoders = Encoder.objects.filter(lab=learning.lab, kind=learning.kind)
        lab_encoders.exclude(pk=encoder.pk).update(is_next=False)
        lab_encoders.filter(pk=encoder.pk).update(is_next=True)
        job = archive_embed_submit(encoder, user)
        _emit("learning.promoted", learning, user)
    return job


def _promotable(learning: Learning) -> Encoder:
    if learning.encoder is None or not learning.is_better:
        raise ConflictError(
            "By the rule that was set beforehand, this is not better than what the lab searches "
            "with now. It was not put in use.",
            code="not-better",
        )
    if learning.encoder.is_default:
        raise ConflictError("The searches of the lab already use it.", code="in-use")
    is_next_coming = encoder_next(learning.kind) is not None
    if not learning.base.is_default or is_next_coming:
        raise ConflictError(
            f"It was learned from {learning.base}, a search model that the portal has replaced or "
            "is about to replace. Learn from the archive again.",
            code="encoder-changing",
        )
    in_use = encoder_of_lab(learning.kind, learning.lab_id)
    if in_use != learning.compared_with:
        raise ConflictError(
            f"It was compared with {learning.compared_with}, but the searches of the lab now use "
            f"{in_use}. Learn from the archive again.",
            code="searches-changed",
        )
    return learning.encoder


def learning_roll_back(*, learning: Learning, user: User) -> Learning:
    """Return the lab's searches to the previous encoder, at once if it has all vectors.

    The shared encoder has them all. A lab's own encoder lacks those of newer regions: a job embeds
    them, and until then searches use the shared one. An encoder that was about to replace the
    rolled-back one is not activated either.

    Raises:
        ForbiddenError: The user is less than a manager of the lab.
        ConflictError: The model is not in use.
    """
    require_role(user, learning.lab_id, at_least=Role.MANAGER)
    with transaction.atomic():
        Encoder.objects.select_for_update().get(pk=learning.base_id)  # new vectors wait
        learning = _reload(learning)
        if learning.use == "no":
            raise ConflictError("The searches of the lab do not use it.", code="not-in-use")
        lab_encoders = Encoder.objects.filter(lab=learning.lab, kind=learning.kind)
        lab_encoders.update(is_next=False)
        before = encoder_to_roll_back_to(learning)
        if learning.use == "yes":
            lab_encoders.update(is_default=False)
            if before.lab_id is not None:
                lab_encoders.filter(pk=before.pk).update(is_next=True)
                if not lab_encoder_switch_if_complete(before):
                    archive_embed_submit(before, user)
        _emit("learning.rolled_back", learning, user)
    return learning_get(user, learning.pk)


def _reload(learning: Learning) -> Learning:
    rows = Learning.objects.select_related("encoder", "base", "compared_with", "lab")
    reloaded: Learning = rows.defer("weights").get(pk=learning.pk)
    return reloaded


def _emit(name: str, learning: Learning, user: User) -> None:
    payload = {"learning_id": str(learning.pk), "user_id": str(user.pk)}
    event_emit(name, lab_id=learning.lab_id, payload=payload | {"method": str(learning.method)})
