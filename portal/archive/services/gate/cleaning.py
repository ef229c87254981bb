"""A file without names takes the place of the one that arrived.

Its bytes are another content with another hash. The hash of what arrived stays with its transfers,
so that the same file is known when it comes again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from django.utils import timezone
from django.utils.crypto import salted_hmac

from portal.archive.models import Asset, Redaction, Slide, Upload, UploadState, Video
from portal.archive.selectors.intake import intake_rules_of
from portal.archive.services.assets import asset_placing, asset_release
from portal.archive.services.quotas import require_quota
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError
from portal.core.events import event_emit


@dataclass(frozen=True, slots=True)
class CleanFile:
    """Result of de-identifying a file.

    Attributes:
        path: De-identified copy; None if nothing had to be removed.
        sha256: Hash of the copy, "" if there is none.
        removed: Names of removed fields.
        left: Identifying data that could not be removed, as sentences.
        stain: Stain named by a removed field; "" if none.
        removed_texts: Values of removed fields, to find them in the pixels; never stored.
        redaction: The boxes that are black in the copy; None if there are none.
    """

    path: Path | None
    sha256: str
    removed: tuple[str, ...]
    left: tuple[str, ...]
    stain: str = ""
    removed_texts: tuple[str, ...] = field(default=(), repr=False)
    redaction: Redaction | None = None


def lab_key(lab_id: uuid.UUID) -> str:
    """The key under which a lab's identifiers are hashed, hexadecimal; never stored."""
    return salted_hmac("tessera.deidentify", str(lab_id), algorithm="sha256").hexdigest()


@contextmanager
def item_placing(item: Slide | Video, clean: CleanFile | None) -> Iterator[None]:
    """The transaction in which ``item_cleaned`` is called; nothing where no file is replaced."""
    is_new = clean is not None and clean.path is not None
    placing = (
        asset_placing(item.lab_id, clean.sha256, received=clean.path)
        if clean is not None and is_new
        else nullcontext()
    )
    with placing:
        yield


def item_cleaned(*, item: Slide | Video, clean: CleanFile) -> None:
    """Keep the copy as the item's original, and delete for good what arrived.

    The original of a redacted file is withheld instead, where the lab's rules want that.

    Call inside ``item_placing`` and ``effect()``. Emits ``item.deidentified``.

    Raises:
        ConflictError: the case has the file without names already.
    """
    if clean.path is None:
        Asset.objects.filter(pk=item.asset_id, removed=None).update(removed=[])
        return
    arrived = item.asset
    twins = type(item).all_objects.filter(case_id=item.case_id, asset__sha256=clean.sha256)
    if twins.exclude(pk=item.pk).exists():
        raise ConflictError(
            f"{item.name} is already in this case, with the names removed.", code="duplicate"
        )
    size_bytes = clean.path.stat().st_size
    is_withheld = clean.redaction is not None and intake_rules_of(item.lab_id).keeps_originals
    require_quota(item.lab_id, max(0, size_bytes - (0 if is_withheld else arrived.size_bytes)))
    storage.the_store().put(clean.path, storage.asset_name(item.lab_id, clean.sha256))
    item.asset, _ = Asset.objects.update_or_create(
        lab_id=item.lab_id,
        sha256=clean.sha256,
        defaults={"removed": list(clean.removed)},
        create_defaults={
            "size_bytes": size_bytes,
            "media_type": arrived.media_type,
            "removed": list(clean.removed),
        },
    )
    item.save(update_fields=["asset", "updated_at"])
    Upload.objects.filter(case_id=item.case_id, asset=arrived).update(asset=item.asset)
    if clean.redaction is not None:
        _redaction_applied(clean.redaction, arrived, is_withheld=is_withheld)
    asset_release(arrived, purge=True)
    payload = {
        "item_id": str(item.pk),
        "item_kind": str(item._meta.model_name),
        "case_id": str(item.case_id),
        "removed": list(clean.removed),
    }
    event_emit("item.deidentified", lab_id=item.lab_id, payload=payload)


def _redaction_applied(redaction: Redaction, arrived: Asset, *, is_withheld: bool) -> None:
    """Record that the boxes are in the file, and withhold its original if it is to be kept."""
    redaction.applied_at = timezone.now()
    if is_withheld:
        upload = redaction.upload
        redaction.original = Upload.objects.create(
            lab_id=upload.lab_id,
            case_id=upload.case_id,
            filename=upload.filename,
            name=upload.name,
            sha256=arrived.sha256,
            size_bytes=arrived.size_bytes,
            received_bytes=arrived.size_bytes,
            state=UploadState.WITHHELD,
            asset=arrived,
            created_by=redaction.created_by,
        )
    redaction.save(update_fields=["applied_at", "original", "updated_at"])
