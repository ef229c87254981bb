"""Redaction templates: the boxes of one file, for all held files of its scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from django.db import transaction

from ml.imaging.results import PictureBox
from portal.archive.models import RedactionTemplate, Upload
from portal.archive.rules import require_intake
from portal.archive.selectors.redaction_templates import files_of_template, scope_of
from portal.archive.services.gate.quarantine import boxes_require, quarantine_redact
from portal.archive.services.items import ItemReceived
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import User

MAX_FILES = 200  # of one request: a job for each


def redaction_template_save(
    *, upload: Upload, user: User, boxes: Sequence[PictureBox]
) -> RedactionTemplate:
    """Keep boxes for the scope of a file in quarantine, in place of earlier ones.

    Emits ``redaction_template.saved``.

    Raises:
        ForbiddenError: Not a manager.
        InvalidInputError: No or too many boxes, or one without an area in the picture.
        ConflictError: The scope of the file is not known.
    """
    require_intake(user, upload.lab_id)
    if not boxes:
        raise InvalidInputError("boxes: a template has at least one box.")
    boxes_require(boxes)
    scope = scope_of(upload)
    if scope is None:
        raise ConflictError(
            f"{upload.name} was not held back for its picture, so that its device and size are not "
            "known. Its boxes cannot be kept as a template.",
            code="scope-unknown",
        )
    with transaction.atomic():
        template, _ = RedactionTemplate.objects.update_or_create(
            lab_id=upload.lab_id,
            **asdict(scope),
            defaults={
                "boxes": [[box.x, box.y, box.width, box.height] for box in boxes],
                "created_by": user,
            },
        )
        _tell("redaction_template.saved", template, user, boxes=len(boxes))
    return template


def redaction_template_apply(*, template: RedactionTemplate, user: User) -> list[ItemReceived]:
    """Submit a job for each held file of the template's scope that blacks out its boxes.

    Takes the oldest ``MAX_FILES`` files; a further call takes the next. Skips files that have boxes
    of their own. Emits ``quarantine.redacted`` for each file.

    Raises:
        ForbiddenError: Not a manager.
        ConflictError: No file waits for it.
    """
    require_intake(user, template.lab_id)
    boxes = [PictureBox(**box) for box in template.boxes_named]
    received = []
    for upload in files_of_template(template, user=user).order_by("created_at", "pk")[:MAX_FILES]:
        try:
            received.append(
                quarantine_redact(upload=upload, user=user, boxes=boxes, template=template)
            )
        except ConflictError:  # decided by somebody else in the meantime
            continue
    if not received:
        raise ConflictError("No held file of this scope waits for it.", code="nothing-held")
    return received


def redaction_template_delete(*, template: RedactionTemplate, user: User) -> None:
    """Delete a template; redacted files stay as they are. Emits ``redaction_template.deleted``.

    Raises:
        ForbiddenError: Not a manager.
    """
    require_intake(user, template.lab_id)
    with transaction.atomic():
        _tell("redaction_template.deleted", template, user)
        template.delete()


def _tell(name: str, template: RedactionTemplate, user: User, **extra: int) -> None:
    payload = {"template_id": str(template.pk), "user_id": str(user.pk), **extra}
    event_emit(name, lab_id=template.lab_id, payload=payload)
