"""Files that did not pass the gate: kept apart with the reason, until a manager decides.

The slide or video that was being made is deleted when its job fails, so that no list, count or
search can show it; what is left is the transfer with its file.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.db import transaction

import ml.errors
from ml.imaging.inspections import LookedThrough
from portal.archive.models import Canvas, Evidence, Slide, Upload, UploadState, Video
from portal.archive.rules import require_intake
from portal.archive.services.assets import asset_lock, asset_release
from portal.archive.services.items import ItemReceived, canvas_id_of, item_create
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.core.text import name_clean
from portal.jobs.models import Job
from portal.labs.models import User

NOT_CLEAN = "not-clean"
SEEN = "seen-in-pixels"
NOT_LOOKED = "not-looked-through"
RELEASABLE = (NOT_CLEAN, SEEN, NOT_LOOKED)
"""Refused by a rule of the lab, not because it cannot be opened: a manager may let it pass."""
_AT_THE_GATE = frozenset(
    {
        one.code
        for one in vars(ml.errors).values()
        if isinstance(one, type) and issubclass(one, ml.errors.BadInputError)
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
    sent = Upload.objects.filter(case_id=item.case_id, asset=item.asset)
    sent.update(
        state=UploadState.QUARANTINED, error_code=code, error_message=message, name=item.name
    )
    # Its jobs are those of the transfer now: who may see that reads there why it was held back.
    Job.objects.filter(target_type=item._meta.model_name, target_id=item.pk).update(
        target_type="upload", target_id=first.pk
    )
    item.delete()
    _tell("quarantine.put", first, None, code=code)
    return True


def quarantine_retry(*, upload: Upload, user: User) -> ItemReceived:
    """Prepare a file in quarantine again, as after a new version or with other rules.

    Raises:
        ForbiddenError: not a manager.
        ConflictError: it is no longer in quarantine.
    """
    require_intake(user, upload.lab_id)
    with transaction.atomic():
        _taken(upload, UploadState.STORED, release_reason="")
        _tell("quarantine.retried", upload, user)
        return item_create(upload=upload, user=user, name=upload.name, is_again=True)


def quarantine_release(*, upload: Upload, user: User, reason: str) -> ItemReceived:
    """Let a file pass that only a rule of the lab held back; the reason is kept and noted.

    Raises:
        InvalidInputError: no reason.
        ConflictError: it cannot be opened, whatever the rules are; or it is not there any more.
    """
    require_intake(user, upload.lab_id)
    reason = name_clean(reason)[:300]  # as many characters as its column holds
    if not reason:
        raise InvalidInputError("reason: say why this file may be released.", code="reason-missing")
    if upload.error_code not in RELEASABLE:
        raise ConflictError(
            f"{upload.name} cannot be opened, so it cannot be released; try again or delete it.",
            code="not-releasable",
        )
    with transaction.atomic():
        _taken(upload, UploadState.STORED, release_reason=reason)
        _tell("quarantine.released", upload, user, reason=reason)
        return item_create(upload=upload, user=user, name=upload.name, is_again=True)


def quarantine_delete(*, upload: Upload, user: User) -> None:
    """Delete a file in quarantine for good: it may hold what nobody should keep.

    Raises what ``quarantine_retry`` raises.
    """
    require_intake(user, upload.lab_id)
    with transaction.atomic():
        asset = upload.asset
        if asset is not None:
            asset_lock((asset.lab_id, asset.sha256))
        _taken(upload, UploadState.QUARANTINED)
        _tell("quarantine.deleted", upload, user)
        Upload.objects.filter(
            case=upload.case_id, asset=asset, state=UploadState.QUARANTINED
        ).delete()
        if asset is not None:
            asset_release(asset, purge=True)


def transfer_of(item: Slide | Video) -> Upload | None:
    """The first transfer that brought an item's file."""
    sent = Upload.objects.filter(case_id=item.case_id, asset=item.asset)
    return sent.order_by("created_at", "pk").first()


def evidence_keep(*, item: Slide | Video, seen: LookedThrough, picture: bytes) -> None:
    """Keep what the pixels reveal until a manager decides, in place of what was kept before."""
    first = transfer_of(item)
    if first is not None:
        Evidence.objects.update_or_create(
            upload=first,
            defaults={
                "lab_id": item.lab_id,
                "found": [asdict(one) for one in seen.found],
                "picture": picture,
            },
        )


def evidence_drop(*, item: Slide | Video) -> None:
    """The file passes: delete what a killed attempt had kept against it.

    What is in quarantine keeps its own: another file may have become the same, cleaned of names.
    """
    passed = Upload.objects.filter(case_id=item.case_id, asset=item.asset_id)
    held = UploadState.QUARANTINED
    Evidence.objects.filter(upload__in=passed.exclude(state=held)).delete()


def item_is_imported(item: Slide | Video) -> bool:
    """Whether a canvas waits for it already, as one of a case that came in whole."""
    return bool(Canvas.everything.filter(pk=canvas_id_of(item.pk)).exists())


def item_is_released(item: Slide | Video) -> bool:
    """Whether a manager let this file pass."""
    sent = Upload.objects.filter(case_id=item.case_id, asset=item.asset)
    return sent.exclude(release_reason="").exists()


def _taken(upload: Upload, state: UploadState, **changes: str) -> None:
    """Move all transfers of this file into this case out of quarantine, once."""
    there = Upload.objects.filter(
        case=upload.case_id, asset=upload.asset_id, state=UploadState.QUARANTINED
    )
    cleared = {} if state == UploadState.QUARANTINED else {"error_code": "", "error_message": ""}
    if not there.filter(pk=upload.pk).exists() or not there.update(
        state=state, **cleared, **changes
    ):
        raise ConflictError(f"{upload.filename} is no longer in quarantine.", code="not-there")
    Evidence.objects.filter(upload__case=upload.case_id, upload__asset=upload.asset_id).delete()
    upload.refresh_from_db()


def _tell(name: str, upload: Upload, user: User | None, **more: str) -> None:
    payload: Mapping[str, Any] = {
        "upload_id": str(upload.pk),
        "case_id": str(upload.case_id),
        "user_id": str(user.pk) if user else None,
        **more,
    }
    event_emit(name, lab_id=uuid.UUID(str(upload.lab_id)), payload=dict(payload))
