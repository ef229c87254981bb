"""Quarantine: files that did not pass the gate, until a manager decides.

The unfinished slide or video is deleted when its job fails, so that no list, count or search can
show it; the transfer remains with its file.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

import ml.errors
from ml.errors import ShapeError
from ml.imaging.picture_boxes import pixel_boxes
from ml.imaging.results import PictureBox, PixelInspection
from portal.archive.events import ArchiveEvent
from portal.archive.models import (
    Canvas,
    Evidence,
    Redaction,
    RedactionTemplate,
    Slide,
    Upload,
    UploadState,
    Video,
)
from portal.archive.models.intake import FileScope
from portal.archive.rules import require_intake
from portal.archive.services.assets import asset_lock, asset_release
from portal.archive.services.items import ItemReceived, canvas_id_of, item_create
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.core.text import name_clean
from portal.jobs.models import Job
from portal.labs.models import User

NOT_CLEAN = "not-clean"
PHI_IN_PIXELS = "phi-in-pixels"
PIXELS_NOT_INSPECTED = "pixels-not-inspected"
RELEASABLE = (NOT_CLEAN, PHI_IN_PIXELS, PIXELS_NOT_INSPECTED)
"""Refused by a rule of the lab, not because it cannot be opened: a manager may let it pass."""
MAX_BOXES = 100
_ANY_SIDE_PX = 1_000_000  # of a picture whose size is not known yet
_AT_THE_GATE = frozenset(
    {
        error_class.code
        for error_class in vars(ml.errors).values()
        if isinstance(error_class, type) and issubclass(error_class, ml.errors.BadInputError)
    }
    | set(RELEASABLE)
)
"""Codes that concern the file itself; other failures are the machine's."""


def item_quarantine(*, item: Slide | Video, code: str, message: str) -> bool:
    """Put the file of an item that failed at the gate into quarantine; False if it did not.

    An imported one stays, failed: regions wait on its canvas. Call in the transaction that ends the
    job. Emits ``quarantine.put``.
    """
    if code not in _AT_THE_GATE or item_is_imported(item):
        return False
    first = transfer_of(item)
    if first is None:
        return False
    uploads = Upload.objects.filter(case_id=item.case_id, asset=item.asset)
    uploads.update(
        state=UploadState.QUARANTINED, error_code=code, error_message=message, name=item.name
    )
    # Its jobs now belong to the upload, so that those who may see it can read why it was held.
    Job.objects.filter(target_type=item._meta.model_name, target_id=item.pk).update(
        target_type="upload", target_id=first.pk
    )
    item.delete()
    _tell(ArchiveEvent.QUARANTINE_PUT, first, None, code=code)
    return True


def quarantine_retry(*, upload: Upload, user: User) -> ItemReceived:
    """Prepare a file in quarantine again, as after a new version or with other rules.

    Raises:
        ForbiddenError: not a manager.
        ConflictError: it is no longer in quarantine.
    """
    require_intake(user, upload.lab_id)
    with transaction.atomic():
        _claim(upload, UploadState.STORED, release_reason="")
        _tell(ArchiveEvent.QUARANTINE_RETRIED, upload, user)
        return item_create(upload=upload, user=user, name=upload.name, is_again=True)


def quarantine_release(*, upload: Upload, user: User, reason: str) -> ItemReceived:
    """Release a file that only a rule of the lab rejected; the reason is stored and logged.

    Raises:
        InvalidInputError: no reason.
        ConflictError: it cannot be opened under any rules, or it no longer exists.
    """
    require_intake(user, upload.lab_id)
    reason = name_clean(reason)[:300]  # as many characters as its column holds
    if not reason:
        raise InvalidInputError("reason: say why this file may be released.", code="reason-missing")
    _require_releasable(upload)
    with transaction.atomic():
        _claim(upload, UploadState.STORED, release_reason=reason)
        _tell(ArchiveEvent.QUARANTINE_RELEASED, upload, user, reason=reason)
        return item_create(upload=upload, user=user, name=upload.name, is_again=True)


def quarantine_redact(
    *,
    upload: Upload,
    user: User,
    boxes: Sequence[PictureBox],
    template: RedactionTemplate | None = None,
) -> ItemReceived:
    """Have places of a file made black for good, and take the file in if it then passes the gate.

    Emits ``quarantine.redacted``. The boxes stay with the file until it is taken in.

    Args:
        boxes: As shares of the picture; none removes earlier ones.
        template: The template that they are of, for the audit log.
    Raises:
        ForbiddenError: Not a manager.
        InvalidInputError: Too many boxes, or one without an area in the picture.
        ConflictError: It cannot be opened, or it is no longer in quarantine.
    """
    require_intake(user, upload.lab_id)
    boxes_require(boxes)
    _require_releasable(upload)
    with transaction.atomic():
        first = _transfers(upload).order_by("created_at", "pk").first() or upload
        Redaction.objects.filter(upload__in=_transfers(upload)).delete()
        if boxes:
            Redaction.objects.create(
                lab_id=upload.lab_id,
                upload=first,
                boxes=[[box.x, box.y, box.width, box.height] for box in boxes],
                created_by=user,
            )
        _claim(upload, UploadState.STORED, release_reason="")
        of_template = {"template": str(template.pk)} if template else {}
        event = ArchiveEvent.QUARANTINE_REDACTED
        _tell(event, upload, user, boxes=str(len(boxes)), **of_template)
        return item_create(upload=upload, user=user, name=upload.name, is_again=True)


def boxes_require(boxes: Sequence[PictureBox]) -> None:
    """Raise ``InvalidInputError`` for too many boxes, or one without an area in the picture."""
    if len(boxes) > MAX_BOXES:
        raise InvalidInputError(
            f"boxes: at most {MAX_BOXES} boxes can be redacted, got {len(boxes)}."
        )
    try:
        pixel_boxes(boxes, (_ANY_SIDE_PX, _ANY_SIDE_PX))
    except ShapeError as error:
        raise InvalidInputError(f"boxes: {error}.", code="box-outside") from error


def original_delete(*, upload: Upload, user: User) -> None:
    """Delete the original of a redacted file for good.

    Raises:
        ForbiddenError: Not a manager.
    """
    require_intake(user, upload.lab_id)
    with transaction.atomic():
        asset = upload.asset
        _tell("original.deleted", upload, user)
        Upload.objects.filter(pk=upload.pk, state=UploadState.WITHHELD).delete()
        if asset is not None:
            asset_release(asset, purge=True)


def quarantine_delete(*, upload: Upload, user: User) -> None:
    """Delete a file in quarantine for good: it may hold what nobody should keep.

    Raises what ``quarantine_retry`` raises.
    """
    require_intake(user, upload.lab_id)
    with transaction.atomic():
        asset = upload.asset
        if asset is not None:
            asset_lock((asset.lab_id, asset.sha256))
        _claim(upload, UploadState.QUARANTINED)
        _tell("quarantine.deleted", upload, user)
        Upload.objects.filter(
            case=upload.case_id, asset=asset, state=UploadState.QUARANTINED
        ).delete()
        if asset is not None:
            asset_release(asset, purge=True)


def transfer_of(item: Slide | Video) -> Upload | None:
    """The first transfer that brought an item's file."""
    uploads = Upload.objects.filter(case_id=item.case_id, asset=item.asset)
    return uploads.order_by("created_at", "pk").first()


def evidence_keep(
    *,
    item: Slide | Video,
    inspected: PixelInspection,
    picture: bytes,
    scope: FileScope = FileScope(),  # noqa: B008 - frozen
) -> None:
    """Keep the findings until a manager decides, in place of earlier ones."""
    first = transfer_of(item)
    if first is not None:
        Evidence.objects.update_or_create(
            upload=first,
            defaults={
                "lab_id": item.lab_id,
                "findings": [asdict(finding) for finding in inspected.findings],
                "picture": picture,
                **asdict(scope),
            },
        )


def evidence_drop(*, item: Slide | Video) -> None:
    """Delete evidence that an interrupted attempt stored against a file that now passes.

    Evidence of quarantined files stays: another file may have the same content after cleaning.
    """
    passed = Upload.objects.filter(case_id=item.case_id, asset=item.asset_id)
    quarantined = UploadState.QUARANTINED
    Evidence.objects.filter(upload__in=passed.exclude(state=quarantined)).delete()


def item_is_imported(item: Slide | Video) -> bool:
    """Return whether a canvas waits for it already, as one of a case that came in whole."""
    return bool(Canvas.all_objects.filter(pk=canvas_id_of(item.pk)).exists())


def item_is_released(item: Slide | Video) -> bool:
    """Return whether a manager let this file pass."""
    uploads = Upload.objects.filter(case_id=item.case_id, asset=item.asset)
    return uploads.exclude(release_reason="").exists()


def _require_releasable(upload: Upload) -> None:
    if upload.error_code not in RELEASABLE:
        raise ConflictError(
            f"{upload.name} cannot be opened, so it cannot be released; try again or delete it.",
            code="not-releasable",
        )


def _transfers(upload: Upload) -> QuerySet[Upload]:
    """The transfers of a file into its case."""
    uploads: QuerySet[Upload] = Upload.objects.filter(case=upload.case_id, asset=upload.asset_id)
    return uploads.exclude(state=UploadState.WITHHELD)


def _claim(upload: Upload, state: UploadState, **changes: str) -> None:
    """Set the state of all quarantined transfers of this file in this case; delete its evidence.

    Raises:
        ConflictError: The file is no longer in quarantine: another decision was faster.
    """
    quarantined = Upload.objects.filter(
        case=upload.case_id, asset=upload.asset_id, state=UploadState.QUARANTINED
    )
    cleared = {} if state == UploadState.QUARANTINED else {"error_code": "", "error_message": ""}
    if not quarantined.filter(pk=upload.pk).exists() or not quarantined.update(
        state=state, **cleared, **changes
    ):
        raise ConflictError(f"{upload.filename} is no longer in quarantine.", code="not-there")
    Evidence.objects.filter(upload__case=upload.case_id, upload__asset=upload.asset_id).delete()
    upload.refresh_from_db()


def _tell(name: str, upload: Upload, user: User | None, **extra: str) -> None:
    payload: Mapping[str, Any] = {
        "upload_id": str(upload.pk),
        "case_id": str(upload.case_id),
        "user_id": str(user.pk) if user else None,
        **extra,
    }
    event_emit(name, lab_id=uuid.UUID(str(upload.lab_id)), payload=dict(payload))
