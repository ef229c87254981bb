"""What managers do with what is learned from a lab's archive: asked for, put in use, taken back."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.retrieval import selectors
from portal.retrieval.models import Encoder, EncoderKind, Learning, LearningMethod
from portal.retrieval.selectors import LEARN_KIND, TRAIN_KIND
from portal.retrieval.services.learning.mapping import metric_switch
from portal.retrieval.services.learning.own import archive_embed_submit

STEPS, STEPS_MOST = 600, 20_000
"""Of an encoder's training by default, and at most: almost six times what the shipped one took."""
STEPS_LEAST = 20  # the first checkpoint
HOURS, HOURS_MOST = 8.0, 72.0
"""After which a training ends by default, and at most: a night, and a long weekend."""


@dataclass(frozen=True, slots=True)
class WantedTraining:
    """How long an encoder may be trained: whichever ends first.

    Raises:
        InvalidInputError: out of bounds.
    """

    steps: int = STEPS
    hours: float = HOURS

    def __post_init__(self) -> None:
        if not STEPS_LEAST <= self.steps <= STEPS_MOST:
            raise InvalidInputError(
                f"steps: expected {STEPS_LEAST} to {STEPS_MOST:,}, got {self.steps}."
            )
        if not 0 < self.hours <= HOURS_MOST:
            raise InvalidInputError(
                f"hours: expected more than 0 and at most {HOURS_MOST:g}, got {self.hours:g}."
            )


def learning_ask(
    *, lab: Lab, kind: EncoderKind, user: User, training: WantedTraining | None = None
) -> Learning:
    """Submit the learning from a lab's archive; the one under way where there is one.

    Args:
        training: of an encoder; None for a metric.
    Raises:
        ForbiddenError: less than a manager of the lab.
        ConflictError: nothing is embedded yet, the common encoder is being replaced, or there is
            too little to learn from (the message says how much it takes and how much there is).
    """
    require_role(user, lab.pk, at_least=Role.MANAGER)
    base = selectors.encoder_default(kind)
    if base is None:
        raise ConflictError("No region is embedded yet.", code="too-little-data")
    if selectors.encoder_next(kind) is not None:
        raise ConflictError(
            "The portal is changing its encoder. Learn from the archive once that is done.",
            code="encoder-changing",
        )
    _, found = selectors.learning_enough(lab.pk, base)
    if found.problem:
        raise ConflictError(found.problem, code="too-little-data")
    with transaction.atomic():
        Lab.objects.select_for_update().get(pk=lab.pk)  # two who ask at once get one
        known = selectors.learning_under_way(lab.pk, kind)
        if known is not None:
            return known
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
        _tell("learning.asked", learning, user)
    return learning


def learning_promote(*, learning: Learning, user: User) -> Job:
    """Let the lab's searches use what was learned, once it has embedded the lab's archive.

    Until then they continue with what they have. Returns the job that embeds it.

    Raises:
        ForbiddenError: less than a manager of the lab.
        ConflictError: it is not better by the rule that was set beforehand, nothing was learned,
            it is in use already, the common encoder is being or was replaced, or the lab's
            searches no longer use what it was compared with.
    """
    require_role(user, learning.lab_id, at_least=Role.MANAGER)
    with transaction.atomic():
        Encoder.objects.select_for_update().get(pk=learning.base_id)  # new vectors wait
        learning = _read_again(learning)
        encoder = _promotable(learning)
        own = Encoder.objects.filter(lab=learning.lab, kind=learning.kind)
        own.exclude(pk=encoder.pk).update(is_next=False)
        own.filter(pk=encoder.pk).update(is_next=True)
        job = archive_embed_submit(encoder, user)
        _tell("learning.promoted", learning, user)
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
    is_next_coming = selectors.encoder_next(learning.kind) is not None
    if not learning.base.is_default or is_next_coming:
        raise ConflictError(
            f"It was learned over {learning.base}, whose vectors the portal no longer makes or "
            "will soon stop making. Learn from the archive again.",
            code="encoder-changing",
        )
    in_use = selectors.encoder_of_lab(learning.kind, learning.lab_id)
    if in_use != learning.compared_with:
        raise ConflictError(
            f"It was compared with {learning.compared_with}, but the searches of the lab now use "
            f"{in_use}. Learn from the archive again.",
            code="searches-changed",
        )
    return learning.encoder


def learning_roll_back(*, learning: Learning, user: User) -> Learning:
    """Let the lab's searches use what they used before, at once if it has all vectors.

    The common encoder has them all. An own one of the lab lacks those of regions drawn in the
    meantime: a job embeds them, and until it is done searches go by the common one. An encoder
    that was about to replace the one rolled back is not put in use either.

    Raises:
        ForbiddenError: less than a manager of the lab.
        ConflictError: it is not in use.
    """
    require_role(user, learning.lab_id, at_least=Role.MANAGER)
    with transaction.atomic():
        Encoder.objects.select_for_update().get(pk=learning.base_id)  # new vectors wait
        learning = _read_again(learning)
        if learning.use == "no":
            raise ConflictError("The searches of the lab do not use it.", code="not-in-use")
        own = Encoder.objects.filter(lab=learning.lab, kind=learning.kind)
        own.update(is_next=False)
        before = selectors.learning_way_back(learning)
        if learning.use == "yes":
            own.update(is_default=False)
            if before.lab_id is not None:
                own.filter(pk=before.pk).update(is_next=True)
                if not metric_switch(before):
                    archive_embed_submit(before, user)
        _tell("learning.rolled_back", learning, user)
    return selectors.learning_get(user, learning.pk)


def _read_again(learning: Learning) -> Learning:
    rows = Learning.objects.select_related("encoder", "base", "compared_with", "lab")
    found: Learning = rows.defer("weights").get(pk=learning.pk)
    return found


def _tell(name: str, learning: Learning, user: User) -> None:
    payload = {"learning_id": str(learning.pk), "user_id": str(user.pk)}
    event_emit(name, lab_id=learning.lab_id, payload=payload | {"method": str(learning.method)})
