"""Writes of what is learned from a lab's archive: asked for, kept, put in use, taken back."""

from __future__ import annotations

import hashlib
from dataclasses import asdict

from django.db import transaction

from ml.index.learning.archive import FromArchive
from ml.index.learning.weights import matrix_bytes
from portal.core.errors import ConflictError
from portal.core.events import event_emit
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.retrieval import selectors
from portal.retrieval.models import Encoder, EncoderKind, Learning
from portal.retrieval.selectors import LEARN_KIND, MAP_KIND, LabMaterial


def learning_ask(*, lab: Lab, kind: EncoderKind, user: User) -> Learning:
    """Submit the learning of a metric from a lab's archive; the one under way where there is one.

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
        learning = Learning.objects.create(lab=lab, kind=kind, user=user, base=base)
        learning.job = job_submit(
            kind=LEARN_KIND,
            args={"learning_id": str(learning.pk)},
            lab=lab,
            user=user,
            target_name=f"Metric over {base}",
        )
        learning.save(update_fields=["job", "updated_at"])
        _tell("learning.asked", learning, user)
    return learning


def learning_save(*, learning: Learning, found: FromArchive, of: LabMaterial) -> Learning:
    """Keep what was learned, as an encoder of the lab where it is one. Inside ``effect()``."""
    learning.result = selectors.learning_result(found, of).as_json()
    learning.is_better = found.is_better
    if not found.metric.is_identity:
        _encoder_make(learning, found)
    learning.save(update_fields=["result", "is_better", "encoder", "weights", "updated_at"])
    return learning


def _encoder_make(learning: Learning, found: FromArchive) -> None:
    base, lab = learning.base, learning.lab
    before = Encoder.objects.filter(lab=lab, kind=learning.kind).count()
    about = {"base": f"{base.name}/{base.version}/{base.config_hash}", "lab": str(lab.pk)}
    weights = matrix_bytes(found.metric.matrix, about)
    # The same regions learned from anew make the same map, which is another encoder all the same.
    identity = "/".join([str(learning.pk), *about.values()]).encode() + weights
    calibration = None
    if found.calibration is not None:
        said = asdict(found.calibration)
        calibration = {key: said[key] for key in ("probabilities", "distances")}
    learning.weights = weights
    learning.encoder = Encoder.objects.create(
        name=f"{base.name}-{lab.slug}"[:80],
        version=str(before + 1),
        config_hash=hashlib.sha256(identity).hexdigest(),
        dim=base.dim,
        kind=learning.kind,
        lab=lab,
        base=base,
        calibration=calibration,
    )


def learning_promote(*, learning: Learning, user: User) -> Job:
    """Let the lab's searches go by what was learned, once it has mapped the lab's archive.

    Until then they go on with what they have. Returns the job that maps it.

    Raises:
        ForbiddenError: less than a manager of the lab.
        ConflictError: it is not better by the rule that was written before, nothing was learned,
            it is in use already, or the common encoder is another by now.
    """
    require_role(user, learning.lab_id, at_least=Role.MANAGER)
    with transaction.atomic():
        Encoder.objects.select_for_update().get(pk=learning.base_id)  # new vectors wait
        learning = Learning.objects.select_related("encoder", "base", "lab").get(pk=learning.pk)
        encoder = _promotable(learning)
        rows = Encoder.objects.filter(lab=learning.lab, kind=learning.kind)
        rows.exclude(pk=encoder.pk).update(is_next=False)
        rows.filter(pk=encoder.pk).update(is_next=True)
        job = selectors.map_job_open(encoder) or job_submit(
            kind=MAP_KIND,
            args={"encoder_id": str(encoder.pk)},
            lab=learning.lab,
            user=user,
            target_name=f"All ROIs with {encoder}",
        )
        _tell("learning.promoted", learning, user)
    return job


def _promotable(learning: Learning) -> Encoder:
    if learning.encoder is None or not learning.is_better:
        raise ConflictError(
            "This is not better than what the lab searches with now, by the rule that was written "
            "down before. It is not put in use.",
            code="not-better",
        )
    if learning.encoder.is_default:
        raise ConflictError("The lab's searches go by it already.", code="in-use")
    is_next_coming = selectors.encoder_next(learning.kind) is not None
    if not learning.base.is_default or is_next_coming:
        raise ConflictError(
            f"It maps the vectors of {learning.base}, which the portal no longer makes or is about "
            "to stop making. Learn from the archive once more.",
            code="encoder-changing",
        )
    return learning.encoder


def learning_roll_back(*, learning: Learning, user: User) -> Learning:
    """Let the lab's searches go by the common encoder again, at once; its vectors are all there.

    Raises:
        ForbiddenError: less than a manager of the lab.
        ConflictError: it is not in use.
    """
    require_role(user, learning.lab_id, at_least=Role.MANAGER)
    with transaction.atomic():
        rows = Encoder.objects.filter(pk=learning.encoder_id or learning.base_id, lab=learning.lab)
        encoder = rows.select_for_update().first()
        if encoder is None or not (encoder.is_default or encoder.is_next):
            raise ConflictError("The lab's searches do not go by it.", code="not-in-use")
        rows.update(is_default=False, is_next=False)
        _tell("learning.rolled_back", learning, user)
    return selectors.learning_get(user, learning.pk)


def _tell(name: str, learning: Learning, user: User) -> None:
    payload = {"learning_id": str(learning.pk), "user_id": str(user.pk)}
    event_emit(name, lab_id=learning.lab_id, payload=payload)
