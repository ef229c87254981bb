"""Inventory of cases: ids, words and files, to search for remains after the erasure."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from ml.types import JsonObject
from portal.annotations.models import RoiRevision
from portal.archive.models import Asset, Canvas, Case, Slide, TrashEntry, Upload, Video
from portal.archive.storage.files import asset_name, relative, the_store
from portal.archive.storage.orphans import orphan_find
from portal.core.models import Event
from portal.core.storage_layout import entries_of
from portal.erasure.services.tables import cascading, with_cases
from portal.interop.rocrate.selectors.crates import crates_concerned
from portal.mosaics.models import Mosaic, MosaicFrame

MIN_WORD_LENGTH = 6
"""Shorter words are not searched for: they occur in texts of other patients."""
_COUNTED: tuple[type[Model], ...] = (RoiRevision, MosaicFrame)
"""Models with thousands of rows to which nothing refers: they are counted, not listed."""


@dataclass(frozen=True, slots=True)
class Original:
    """Uploaded file; ``is_shared``: a case that is not erased has it as well."""

    sha256: str
    size_bytes: int
    is_shared: bool


@dataclass(frozen=True, slots=True)
class Inventory:
    """Data of the cases to erase.

    Attributes:
        rows: Ids by the label of their model, as texts.
        counts: Numbers of dependent rows without ids of interest.
        words: Accession numbers, the patient's key, names of files and items.
    """

    lab_id: str
    rows: dict[str, list[str]]
    counts: dict[str, int]
    words: list[str]
    originals: list[Original]

    @property
    def ids(self) -> set[str]:
        """Ids of all rows as texts."""
        return {pk for keys in self.rows.values() for pk in keys}

    @property
    def numbers(self) -> dict[str, int]:
        """Count of rows by model name."""
        counts = {label: len(ids) for label, ids in self.rows.items()} | self.counts
        return {label.rpartition(".")[2].lower(): count for label, count in counts.items()}

    def as_json(self) -> JsonObject:
        """JSON form that ``inventory_read`` reads."""
        return asdict(self)


def inventory_read(data: JsonObject) -> Inventory:
    """Inventory from the JSON of ``Inventory.as_json``."""
    originals = [Original(**original) for original in data["originals"]]
    return Inventory(**data | {"originals": originals})


def inventory_of(lab_id: uuid.UUID, case_ids: Collection[uuid.UUID]) -> Inventory:
    """Inventory of cases of a lab, in the trash or not."""
    cases = Case.all_objects.filter(pk__in=case_ids)
    names = cases.values_list("accession", "patient_key")
    words = {word for ids_of_model in names for word in ids_of_model if word}
    crates = crates_concerned(lab_id=lab_id, case_ids=case_ids, words=words)
    ids_of_model = _rows_with(case_ids, crates)
    named_models: tuple[type[Model], ...] = (Slide, Video, Mosaic, Canvas)
    for model in named_models:
        words |= set(_rows_in(model, ids_of_model[model]).values_list("name", flat=True))
    words |= set(_rows_in(Upload, ids_of_model[Upload]).values_list("filename", flat=True))
    rows = {
        model._meta.label: sorted(map(str, ids))
        for model, ids in ids_of_model.items()
        if model not in _COUNTED
    }
    counts = {model._meta.label: len(ids_of_model[model]) for model in _COUNTED}
    originals = [*_originals(ids_of_model), *_orphaned_originals(case_ids, lab_id)]
    return Inventory(str(lab_id), rows, counts, sorted(words - {""}), originals)


def rows_left(inventory: Inventory) -> int:
    """Number of rows of an inventory that still exist."""
    count = 0
    models: list[type[Model]] = [*with_cases(), TrashEntry]
    for model in models:
        ids = inventory.rows.get(model._meta.label, [])
        for start in range(0, len(ids), 5000):
            count += model._base_manager.filter(pk__in=ids[start : start + 5000]).count()
    return count


def files_left(inventory: Inventory) -> list[str]:
    """Files and folders of an inventory that still exist."""
    names = [relative(path) for path in entries_of(inventory.ids)]
    lab_id = uuid.UUID(inventory.lab_id)
    for original in inventory.originals:
        if original.is_shared:
            continue
        name = asset_name(lab_id, original.sha256)
        names += [name] if the_store().stat(name) else []
        names += [copy.name for copy in orphan_find(lab_id, original.sha256)]
    return names


def _rows_with(
    case_ids: Collection[uuid.UUID], crates: Collection[Upload]
) -> dict[type[Model], set[uuid.UUID | int]]:
    """Ids of rows that are deleted with these cases and crates, by model."""
    entries = TrashEntry.objects.filter(case_id__in=case_ids).values_list("pk", flat=True)
    ids_of_model: dict[type[Model], set[uuid.UUID | int]] = {model: set() for model in with_cases()}
    ids_of_model[TrashEntry] = set(entries)
    new: dict[type[Model], set[uuid.UUID | int]] = {
        Case: set(case_ids),
        Upload: {crate.pk for crate in crates},
    }
    while new:
        parent, ids = new.popitem()
        ids -= ids_of_model[parent]
        ids_of_model[parent] |= ids
        for field in cascading(parent) if ids else ():
            children = _children(field, ids) - ids_of_model[field.model]
            if children:
                new.setdefault(field.model, set()).update(children)
    return ids_of_model


def _children(field: Any, ids: Collection[uuid.UUID | int]) -> set[uuid.UUID | int]:
    model, name = field.model, field.name
    listed = list(ids)
    child_ids: set[uuid.UUID | int] = set()
    for start in range(0, len(listed), 5000):
        query = model._base_manager.filter(**{f"{name}__in": listed[start : start + 5000]})
        child_ids |= set(query.order_by().values_list("pk", flat=True))
    return child_ids


def _rows_in(model: type[Model], ids: Collection[uuid.UUID | int]) -> QuerySet[Any]:
    return model._base_manager.filter(pk__in=ids).order_by()


def _orphaned_originals(case_ids: Collection[uuid.UUID], lab_id: uuid.UUID) -> list[Original]:
    """Orphans of the cases: originals deleted earlier that are still on the disk."""
    events = Event.objects.filter(
        lab_id=lab_id, name="trash.purged", payload__case_id__in=[str(pk) for pk in case_ids]
    )
    hashes = {
        digest
        for payload in events.values_list("payload", flat=True)
        for digest in payload.get("originals", ())
    }
    hashes -= set(
        Asset.objects.filter(lab_id=lab_id, sha256__in=hashes).values_list("sha256", flat=True)
    )
    copies = {sha256: orphan_find(lab_id, sha256) for sha256 in sorted(hashes)}
    return [
        Original(digest, files[0].size_bytes, is_shared=False)
        for digest, files in copies.items()
        if files
    ]


def _originals(rows: dict[type[Model], set[Any]]) -> list[Original]:
    slides, videos, uploads = rows[Slide], rows[Video], rows[Upload]
    asset = OuterRef("pk")
    is_shared = (
        Exists(Slide.all_objects.filter(asset=asset).exclude(pk__in=slides))
        | Exists(Video.all_objects.filter(asset=asset).exclude(pk__in=videos))
        | Exists(Upload.objects.filter(asset=asset).exclude(pk__in=uploads))
    )
    is_referenced = Q(slides__in=slides) | Q(videos__in=videos) | Q(uploads__in=uploads)
    assets = Asset.objects.filter(is_referenced).annotate(is_shared=is_shared).distinct()
    return [Original(*row) for row in assets.values_list("sha256", "size_bytes", "is_shared")]
