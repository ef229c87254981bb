"""A file without names takes the place of the one that arrived.

Its bytes are another content with another hash. The hash of what arrived stays with its transfers,
so that the same file is known when it comes again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from django.utils.crypto import salted_hmac

from portal.archive import storage
from portal.archive.models import Asset, Slide, Upload, Video
from portal.archive.services.assets import asset_placing, asset_release
from portal.archive.services.quotas import require_quota
from portal.core.errors import ConflictError
from portal.core.events import event_emit


@dataclass(frozen=True, slots=True)
class CleanFile:
    """What became of a file.

    Attributes:
        path: the copy without names; None if nothing had to be taken out.
        sha256: of the copy, "" where there is none.
        removed: names of fields. left: what could not be taken out, as sentences.
        stain: the one that a removed field named; "" if none did.
    """

    path: Path | None
    sha256: str
    removed: tuple[str, ...]
    left: tuple[str, ...]
    stain: str = ""


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

    Call inside ``item_placing`` and ``effect()``. Emits ``item.deidentified``.

    Raises:
        ConflictError: the case has the file without names already.
    """
    if clean.path is None:
        Asset.objects.filter(pk=item.asset_id, removed=None).update(removed=[])
        return
    arrived = item.asset
    twins = type(item).everything.filter(case_id=item.case_id, asset__sha256=clean.sha256)
    if twins.exclude(pk=item.pk).exists():
        raise ConflictError(
            f"{item.name} is already in this case, with the names removed.", code="duplicate"
        )
    size_bytes = clean.path.stat().st_size
    require_quota(item.lab_id, max(0, size_bytes - arrived.size_bytes))
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
    asset_release(arrived, purge=True)
    payload = {
        "item_id": str(item.pk),
        "item_kind": str(item._meta.model_name),
        "case_id": str(item.case_id),
        "removed": list(clean.removed),
    }
    event_emit("item.deidentified", lab_id=item.lab_id, payload=payload)
