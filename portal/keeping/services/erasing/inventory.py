"""What there is of cases: ids, words and files, gathered before erasing, to look for them after."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from django.db.models import Exists, Model, OuterRef, Q

from portal.annotations.models import Roi, RoiRevision
from portal.archive import storage
from portal.archive.models import (
    Asset,
    BinEntry,
    Canvas,
    Case,
    CaseShare,
    Slide,
    Upload,
    Video,
)
from portal.core.models import Event
from portal.exchange.selectors import export_folder, import_folder
from portal.mosaics.build_cache import build_cache_folder
from portal.mosaics.models import Followup, Mosaic, MosaicComponent, MosaicFrame
from portal.retrieval.models import CanvasStain, Embedding, Report, ReportRegion

WORD_LEAST = 6
"""Shorter words occur in texts of other patients as well; they are not looked for."""


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
        rows: ids by the name of their model.
        counts: of rows that go with those, without ids of their own to look for.
        words: accession numbers, the patient's key, names of files and items.
        folders: derived, cached and half-built; ``paths`` are transfers.
        names: of originals, in the store.
    """

    rows: dict[str, set[uuid.UUID]]
    counts: dict[str, int]
    words: set[str]
    originals: list[Original]
    folders: list[Path] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @property
    def ids(self) -> set[str]:
        """Every id, as JSON has it."""
        return {str(pk) for found in self.rows.values() for pk in found}


def inventory_of(case_ids: Collection[uuid.UUID]) -> Inventory:
    """Everything of these cases, in the bin or not."""
    cases = Case.everything.filter(pk__in=case_ids)
    slides, videos = (model.everything.filter(case__in=case_ids) for model in (Slide, Video))
    mosaics = Mosaic.everything.filter(case__in=case_ids)
    canvases = Canvas.everything.filter(case__in=case_ids)
    uploads = Upload.objects.filter(case__in=case_ids)
    rois = Roi.everything.filter(canvas__in=canvases.values("pk"))
    of_canvas = Q(target__in=canvases.values("pk")) | Q(roi__in=rois.values("pk"))
    followups = Followup.everything.filter(of_canvas)
    entries = BinEntry.objects.filter(case_id__in=case_ids)
    found = (cases, slides, videos, mosaics, canvases, uploads, rois, followups, entries)
    rows = {
        str(query.model._meta.model_name): set(query.order_by().values_list("pk", flat=True))
        for query in found
    }
    words = {*cases.values_list("accession", flat=True)}
    words |= {*cases.values_list("patient_key", flat=True)}
    words |= {*uploads.values_list("filename", flat=True)}
    for query in (slides, videos, mosaics, canvases):
        words |= {*query.values_list("name", flat=True)}
    owners = [*slides, *videos, *mosaics, *followups]
    folders = [storage.derived_folder(owner.pk) for owner in owners]
    folders += [export_folder(pk) for pk in rows["case"]]
    folders += [storage.cache_folder(pk) for pk in rows["canvas"]]
    folders += [build_cache_folder(mosaic) for mosaic in mosaics]
    lab_id = next(iter(cases)).lab_id if cases else uuid.UUID(int=0)
    folders += [import_folder(lab_id, pk) for pk in rows["case"]]
    originals = [*_originals(rows), *_in_trash(case_ids, lab_id)]
    going = [one.sha256 for one in originals if not one.is_shared]
    names = [storage.asset_name(lab_id, sha256) for sha256 in going]
    names += [copy.name for sha256 in going for copy in storage.trash_find(lab_id, sha256)]
    paths = [storage.incoming_path(str(pk)) for pk in rows["upload"]]
    return Inventory(rows, _counts(rows), words - {""}, originals, folders, paths, names)


def rows_left(inventory: Inventory) -> int:
    """How many of the rows are still there."""
    models: tuple[type[Model], ...] = (
        Case,
        Slide,
        Video,
        Mosaic,
        Canvas,
        Upload,
        Roi,
        Followup,
        BinEntry,
    )
    return sum(
        model._base_manager.filter(pk__in=chunk).count()
        for model in models
        for chunk in _chunks(inventory.rows[str(model._meta.model_name)])
    ) + sum(_counts(inventory.rows).values())


def files_left(inventory: Inventory) -> list[str]:
    """Which of the files and folders are still there."""
    places = [*inventory.folders, *inventory.paths]
    left = [storage.relative(path) for path in places if path.exists()]
    return left + [name for name in inventory.names if storage.the_store().stat(name)]


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


def _originals(rows: dict[str, set[uuid.UUID]]) -> list[Original]:
    named = (
        Q(slides__in=rows["slide"]) | Q(videos__in=rows["video"]) | Q(uploads__in=rows["upload"])
    )
    asset = OuterRef("pk")
    is_shared = (
        Exists(Slide.everything.filter(asset=asset).exclude(pk__in=rows["slide"]))
        | Exists(Video.everything.filter(asset=asset).exclude(pk__in=rows["video"]))
        | Exists(Upload.objects.filter(asset=asset).exclude(pk__in=rows["upload"]))
    )
    found = Asset.objects.filter(named).annotate(is_shared=is_shared).distinct()
    return [Original(*row) for row in found.values_list("sha256", "size_bytes", "is_shared")]


def _counts(rows: dict[str, set[uuid.UUID]]) -> dict[str, int]:
    rois, canvases, mosaics = rows["roi"], rows["canvas"], rows["mosaic"]
    return {
        "caseshare": _count(CaseShare, "case", rows["case"]),
        "roirevision": _count(RoiRevision, "roi", rois),
        "embedding": _count(Embedding, "canvas", canvases),
        "report": _count(Report, "canvas", canvases),
        "reportregion": _count(ReportRegion, "canvas", canvases),
        "canvasstain": _count(CanvasStain, "canvas", canvases),
        "mosaiccomponent": _count(MosaicComponent, "mosaic", mosaics),
        "mosaicframe": _count(MosaicFrame, "mosaic", mosaics),
    }


def _count(model: type[Model], field_name: str, ids: set[uuid.UUID]) -> int:
    rows = model._base_manager
    return sum(rows.filter(**{f"{field_name}__in": chunk}).count() for chunk in _chunks(ids))


def _chunks(ids: set[uuid.UUID], size: int = 5000) -> list[list[uuid.UUID]]:
    listed = sorted(ids)
    return [listed[i : i + size] for i in range(0, len(listed), size)]
