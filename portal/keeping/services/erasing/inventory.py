"""What there is of cases: ids, words and files, gathered before erasing, to look for them after."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from ml.types import JsonObject
from portal.annotations.models import RoiRevision
from portal.archive import storage
from portal.archive.models import Asset, BinEntry, Canvas, Case, Slide, Upload, Video
from portal.core.models import Event
from portal.core.storage_layout import entries_of
from portal.exchange.services import crates_concerned
from portal.keeping.services.erasing.tables import cascading, with_cases
from portal.mosaics.models import Mosaic, MosaicFrame

MIN_WORD_LENGTH = 6
"""Shorter words occur in texts of other patients as well; they are not looked for."""
_COUNTED: tuple[type[Model], ...] = (RoiRevision, MosaicFrame)
"""Rows by the thousand, whose ids name nothing: how many there are is enough."""


@dataclass(frozen=True, slots=True)
class Original:
    """An uploaded file; ``is_shared``: a case that stays has it as well."""

    sha256: str
    size_bytes: int
    is_shared: bool


@dataclass(frozen=True, slots=True)
class Inventory:
    """What there is.

    Attributes:
        rows: ids by the label of their model, as texts.
        counts: of rows that go with those, whose ids name nothing.
        words: accession numbers, the patient's key, names of files and items.
    """

    lab_id: str
    rows: dict[str, list[str]]
    counts: dict[str, int]
    words: list[str]
    originals: list[Original]

    @property
    def ids(self) -> set[str]:
        """Every id, as JSON has it."""
        return {pk for found in self.rows.values() for pk in found}

    @property
    def numbers(self) -> dict[str, int]:
        """Count of rows by model name."""
        found = {label: len(ids) for label, ids in self.rows.items()} | self.counts
        return {label.rpartition(".")[2].lower(): count for label, count in found.items()}

    def as_json(self) -> JsonObject:
        """JSON form that ``inventory_read`` reads."""
        return asdict(self)


def inventory_read(kept: JsonObject) -> Inventory:
    """Inventory from the JSON of ``Inventory.as_json``."""
    originals = [Original(**one) for one in kept["originals"]]
    return Inventory(**kept | {"originals": originals})


def inventory_of(lab_id: uuid.UUID, case_ids: Collection[uuid.UUID]) -> Inventory:
    """Everything of these cases of a lab, in the bin or not."""
    cases = Case.everything.filter(pk__in=case_ids)
    names = cases.values_list("accession", "patient_key")
    words = {word for found in names for word in found if word}
    crates = crates_concerned(lab_id=lab_id, case_ids=case_ids, words=words)
    found = _rows_with(case_ids, crates)
    named: tuple[type[Model], ...] = (Slide, Video, Mosaic, Canvas)
    for model in named:
        words |= set(_rows_in(model, found[model]).values_list("name", flat=True))
    words |= set(_rows_in(Upload, found[Upload]).values_list("filename", flat=True))
    rows = {
        model._meta.label: sorted(map(str, ids))
        for model, ids in found.items()
        if model not in _COUNTED
    }
    counts = {model._meta.label: len(found[model]) for model in _COUNTED}
    originals = [*_originals(found), *_in_trash(case_ids, lab_id)]
    return Inventory(str(lab_id), rows, counts, sorted(words - {""}), originals)


def rows_left(inventory: Inventory) -> int:
    """How many of the rows are still there."""
    left = 0
    models: list[type[Model]] = [*with_cases(), BinEntry]
    for model in models:
        ids = inventory.rows.get(model._meta.label, [])
        for start in range(0, len(ids), 5000):
            left += model._base_manager.filter(pk__in=ids[start : start + 5000]).count()
    return left


def files_left(inventory: Inventory) -> list[str]:
    """Which of the files and folders are still there."""
    left = [storage.relative(path) for path in entries_of(inventory.ids)]
    lab_id = uuid.UUID(inventory.lab_id)
    for original in inventory.originals:
        if original.is_shared:
            continue
        name = storage.asset_name(lab_id, original.sha256)
        left += [name] if storage.the_store().stat(name) else []
        left += [copy.name for copy in storage.trash_find(lab_id, original.sha256)]
    return left


def _rows_with(
    case_ids: Collection[uuid.UUID], crates: Collection[Upload]
) -> dict[type[Model], set[uuid.UUID | int]]:
    """The rows of every model that go with these cases and crates, in or out of the bin."""
    entries = BinEntry.objects.filter(case_id__in=case_ids).values_list("pk", flat=True)
    found: dict[type[Model], set[uuid.UUID | int]] = {model: set() for model in with_cases()}
    found[BinEntry] = set(entries)
    new: dict[type[Model], set[uuid.UUID | int]] = {
        Case: set(case_ids),
        Upload: {crate.pk for crate in crates},
    }
    while new:
        parent, ids = new.popitem()
        ids -= found[parent]
        found[parent] |= ids
        for field in cascading(parent) if ids else ():
            children = _children(field, ids) - found[field.model]
            if children:
                new.setdefault(field.model, set()).update(children)
    return found


def _children(field: Any, ids: Collection[uuid.UUID | int]) -> set[uuid.UUID | int]:
    model, name = field.model, field.name
    listed = list(ids)
    found: set[uuid.UUID | int] = set()
    for start in range(0, len(listed), 5000):
        query = model._base_manager.filter(**{f"{name}__in": listed[start : start + 5000]})
        found |= set(query.order_by().values_list("pk", flat=True))
    return found


def _rows_in(model: type[Model], ids: Collection[uuid.UUID | int]) -> QuerySet[Any]:
    return model._base_manager.filter(pk__in=ids).order_by()


def _in_trash(case_ids: Collection[uuid.UUID], lab_id: uuid.UUID) -> list[Original]:
    """What was deleted for good before, and waits in the trash; no row names it any more."""
    told = Event.objects.filter(
        lab_id=lab_id, name="bin.purged", payload__case_id__in=[str(pk) for pk in case_ids]
    )
    gone = {
        one
        for payload in told.values_list("payload", flat=True)
        for one in payload.get("originals", ())
    }
    gone -= set(
        Asset.objects.filter(lab_id=lab_id, sha256__in=gone).values_list("sha256", flat=True)
    )
    copies = {sha256: storage.trash_find(lab_id, sha256) for sha256 in sorted(gone)}
    return [
        Original(one, found[0].size_bytes, is_shared=False)
        for one, found in copies.items()
        if found
    ]


def _originals(rows: dict[type[Model], set[Any]]) -> list[Original]:
    slides, videos, uploads = rows[Slide], rows[Video], rows[Upload]
    asset = OuterRef("pk")
    is_shared = (
        Exists(Slide.everything.filter(asset=asset).exclude(pk__in=slides))
        | Exists(Video.everything.filter(asset=asset).exclude(pk__in=videos))
        | Exists(Upload.objects.filter(asset=asset).exclude(pk__in=uploads))
    )
    named = Q(slides__in=slides) | Q(videos__in=videos) | Q(uploads__in=uploads)
    found = Asset.objects.filter(named).annotate(is_shared=is_shared).distinct()
    return [Original(*row) for row in found.values_list("sha256", "size_bytes", "is_shared")]
