"""Limits on the size of a lab's originals."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, Sum

from portal.archive.models import Asset, LabQuota, Upload, UploadState
from portal.archive.storage.files import human_size
from portal.core.database.locks import transaction_lock
from portal.core.errors import StorageFullError
from portal.labs.models import Lab


def quota_set(*, lab: Lab, limit_bytes: int | None) -> None:
    """Set the limit of a lab; None resets it to ``TESSERA_LAB_QUOTA_BYTES``."""
    if limit_bytes is None:
        LabQuota.objects.filter(lab=lab).delete()
    else:
        LabQuota.objects.update_or_create(lab=lab, defaults={"limit_bytes": limit_bytes})


def quota_limit_bytes(lab_id: uuid.UUID) -> int:
    """Most bytes of a lab's originals; 0 means no limit."""
    lab_limit = LabQuota.objects.filter(lab_id=lab_id).values_list("limit_bytes", flat=True).first()
    return int(settings.TESSERA_LAB_QUOTA_BYTES) if lab_limit is None else lab_limit


def quota_used_bytes(lab_id: uuid.UUID) -> int:
    """Bytes of a lab's originals, and what transfers under way have announced.

    A refused crate counts too: it is kept, to be tried again.
    """
    stored = Asset.objects.filter(lab_id=lab_id).aggregate(sum=Sum("size_bytes"))["sum"] or 0
    is_open = Q(state__in=(UploadState.RECEIVING, UploadState.CHECKING))
    is_refused = Q(state=UploadState.REFUSED, case=None)
    under_way = Upload.objects.filter(is_open | is_refused, lab_id=lab_id, joined_upload=None)
    # a joined upload counts instead of its parts
    coming = under_way.aggregate(sum=Sum(F("size_bytes")))
    return int(stored + (coming["sum"] or 0))


@contextmanager
def quota_taking(lab_id: uuid.UUID) -> Iterator[None]:
    """The transaction in which room is checked and taken: two must not both take the last of it."""
    with transaction.atomic():
        transaction_lock(f"lab {lab_id}")  # the lock of ``asset_placing``
        yield


def require_quota(lab_id: uuid.UUID, size_bytes: int, *, frees_bytes: int = 0) -> None:
    """Refuse what would take a lab beyond its limit; what takes no more room is never refused.

    Args:
        frees_bytes: counted as used now, and freed once this is in.
    Raises:
        StorageFullError: code ``lab-quota``, naming limit and use.
    """
    limit = quota_limit_bytes(lab_id)
    if not limit or size_bytes <= 0:
        return
    used = quota_used_bytes(lab_id) - frees_bytes
    if used + size_bytes > limit:
        raise StorageFullError(
            f"The storage of the lab is full: {human_size(used)} of {human_size(limit)} are used, "
            f"and {human_size(size_bytes)} more do not fit.",
            code="lab-quota",
            details={"limit_bytes": limit, "used_bytes": used},
        )
