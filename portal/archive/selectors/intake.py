"""Reads of how files are taken in."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from portal.archive import storage
from portal.archive.models import Asset, IntakeRules, Upload, UploadState
from portal.archive.rules import require_intake
from portal.core.errors import NotFoundError
from portal.labs.models import Membership, Role, User


def intake_rules_of(lab_id: uuid.UUID) -> IntakeRules:
    """The lab's rules; the defaults, unsaved, where it has none of its own."""
    found: IntakeRules | None = IntakeRules.objects.filter(lab_id=lab_id).first()
    return found or IntakeRules(lab_id=lab_id)


def quarantine_list(*, user: User) -> QuerySet[Upload]:
    """Files in quarantine of the labs that the person manages, newest first."""
    held = _managed(user, UploadState.QUARANTINED)
    held = held.select_related("case", "lab", "created_by", "asset", "evidence")
    return held.defer("evidence__picture")


def refused_list(*, user: User) -> QuerySet[Upload]:
    """Files refused on arrival in labs that the person manages, newest first; none is kept."""
    return _managed(user, UploadState.REFUSED).select_related("case", "created_by")


def _managed(user: User, state: UploadState) -> QuerySet[Upload]:
    managed = Membership.objects.of(user).filter(role=Role.MANAGER).values("lab_id")
    found: QuerySet[Upload] = Upload.objects.owned_by(user).filter(
        state=state, lab_id__in=managed, case__isnull=False, case__bin_entry=None, is_part=False
    )
    return found.order_by("-updated_at", "id")


def quarantine_get(*, user: User, upload_id: uuid.UUID) -> Upload:
    """One of them, or ``NotFoundError``; ``ForbiddenError`` for members who are not managers."""
    found = quarantine_list(user=user).filter(pk=upload_id).first()
    if found is not None:
        return found
    held = Upload.objects.owned_by(user).filter(pk=upload_id, state=UploadState.QUARANTINED).first()
    if held is not None:
        require_intake(user, held.lab_id)
    raise NotFoundError("No such file in quarantine.")


def asset_received(lab_id: uuid.UUID, sha256: str) -> Asset | None:
    """What the lab keeps of a file with these bytes, which may have been sent with names in them.

    None as well where the storage has lost it: then it is received again.
    """
    if not sha256:
        return None
    kept: Asset | None = Asset.objects.filter(lab_id=lab_id, sha256=sha256).first()
    if kept is None:
        sent = Upload.objects.filter(lab_id=lab_id, sha256=sha256).exclude(asset=None)
        before = sent.select_related("asset").first()
        kept = before.asset if before else None
    if kept is None:
        return None
    found = storage.the_store().stat(storage.asset_name(lab_id, kept.sha256))
    return kept if found is not None and found.size_bytes == kept.size_bytes else None
