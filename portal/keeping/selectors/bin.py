"""Reads of the bin: acts of deletion, and ROIs that were deleted by themselves."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.utils import timezone

from portal.annotations.models import Roi, RoiAction, RoiRevision
from portal.archive.models import BinEntry, BinKind, Case, Slide, Video
from portal.core.errors import NotFoundError
from portal.labs.models import Lab, Role, User
from portal.labs.selectors import labs_with_role
from portal.mosaics.models import Mosaic


@dataclass(frozen=True, slots=True)
class BinRow:
    """An entry as it is shown.

    Attributes:
        accession: of its case.
        holds: what it took along, in words: ``2 slides, 14 regions``.
        purge_at: when it is deleted for good.
    """

    entry: BinEntry
    accession: str
    holds: str
    purge_at: datetime


def bin_days() -> int:
    """How long what is deleted can be restored."""
    return int(settings.TESSERA_BIN_DAYS)


def purge_before() -> datetime:
    """What was deleted before this moment is deleted for good."""
    return timezone.now() - timedelta(days=bin_days())


def bin_list(user: User, *, lab: Lab | None = None) -> QuerySet[BinEntry]:
    """What is in the bins of the labs in which the person may restore, the newest first."""
    labs = labs_with_role(user, at_least=Role.ANNOTATOR)
    entries = BinEntry.objects.filter(lab__in=labs).select_related("deleted_by", "lab")
    return entries.filter(lab=lab) if lab else entries


def bin_get(user: User, entry_id: uuid.UUID) -> BinEntry:
    """One entry; ``NotFoundError`` also where it was restored, or is another lab's."""
    entry = BinEntry.objects.visible_to(user).filter(pk=entry_id).first()
    if entry is None:
        raise NotFoundError("There is no such item in the bin.")
    return entry


def bin_rows(entries: Iterable[BinEntry]) -> list[BinRow]:
    """What a page shows of entries, in a few queries for all of them."""
    entries = list(entries)
    ids = [entry.pk for entry in entries]
    cases = Case.everything.filter(pk__in={entry.case_id for entry in entries})
    accession = dict(cases.values_list("pk", "accession"))
    counts = {
        "slide": _counted(Slide.everything.filter(bin_entry__in=ids)),
        "video": _counted(Video.everything.filter(bin_entry__in=ids)),
        "mosaic": _counted(Mosaic.everything.filter(bin_entry__in=ids)),
    }
    rois = Roi.everything.live().filter(canvas__bin_entry__in=ids).order_by()
    regions = dict(rois.values_list("canvas__bin_entry").annotate(number=Count("pk")))
    rows = []
    for entry in entries:
        held = {word: found.get(entry.pk, 0) for word, found in counts.items()}
        if entry.kind != BinKind.CASE:
            held[entry.kind] = 0
        held["region"] = regions.get(entry.pk, 0)
        rows.append(
            BinRow(
                entry=entry,
                accession=accession.get(entry.case_id, ""),
                holds=_words(held),
                purge_at=entry.created_at + timedelta(days=bin_days()),
            )
        )
    return rows


def rois_in_bin(user: User, *, lab: Lab) -> QuerySet[Roi]:
    """ROIs that were deleted by themselves, the newest first, with ``deleted_by``.

    Those on something that is in the bin come back with it and are not shown.
    """
    labs = labs_with_role(user, at_least=Role.ANNOTATOR)
    last = RoiRevision.objects.filter(roi=OuterRef("pk"), action=RoiAction.DELETE)
    by = last.order_by("-version").values("author__full_name")[:1]
    return (
        Roi.objects.owned_by(user)
        .filter(lab__in=labs, lab=lab, deleted_at__isnull=False)
        .select_related("canvas__case", "label")
        .annotate(deleted_by=Subquery(by))
        .defer("geometry", "foreign", "canvas__levels")
        .order_by("-deleted_at", "id")
    )


def roi_in_bin(user: User, roi_id: uuid.UUID) -> Roi:
    """One deleted ROI; ``NotFoundError`` where it is not deleted, or another lab's."""
    rois = Roi.objects.visible_to(user).filter(deleted_at__isnull=False)
    roi: Roi | None = rois.select_related("canvas").filter(pk=roi_id).first()
    if roi is None:
        raise NotFoundError("There is no such region in the bin.")
    return roi


def _counted(rows: QuerySet[Slide] | QuerySet[Video] | QuerySet[Mosaic]) -> dict[uuid.UUID, int]:
    return dict(rows.order_by().values_list("bin_entry").annotate(number=Count("pk")))


def _words(held: dict[str, int]) -> str:
    return ", ".join(
        f"{count} {word}{'' if count == 1 else 's'}" for word, count in held.items() if count
    )
