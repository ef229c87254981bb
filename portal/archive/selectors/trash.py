"""Reads of the trash."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet
from django.utils import timezone

from portal.archive.models import Case, Slide, TrashEntry, TrashKind, Video
from portal.core.errors import NotFoundError
from portal.core.registry import Registry
from portal.labs.models import Lab, Role, User
from portal.labs.selectors import labs_with_role

Counter = Callable[[Collection[uuid.UUID]], Mapping[uuid.UUID, int]]
TRASH_COUNTERS: Registry[str, Counter] = Registry()
"""Functions that count what went into the trash with entries, by the name of one such thing."""


@dataclass(frozen=True, slots=True)
class TrashRow:
    """An entry with the data that a page shows.

    Attributes:
        accession: Accession number of its case.
        holds: Objects deleted with it, as text: ``2 slides, 14 regions``.
        purge_at: Time at which it is deleted for good.
    """

    entry: TrashEntry
    accession: str
    holds: str
    purge_at: datetime


def trash_days() -> int:
    """Number of days during which deleted objects can be restored."""
    return int(settings.TESSERA_TRASH_DAYS)


def purge_before() -> datetime:
    """Objects deleted before this moment are deleted for good."""
    return timezone.now() - timedelta(days=trash_days())


def trash_list(user: User, *, lab: Lab | None = None) -> QuerySet[TrashEntry]:
    """Entries in the trash of the labs in which the person may restore, newest first."""
    labs = labs_with_role(user, at_least=Role.ANNOTATOR)
    entries = TrashEntry.objects.filter(lab__in=labs).select_related("deleted_by", "lab")
    return entries.filter(lab=lab) if lab else entries


def trash_get(user: User, entry_id: uuid.UUID) -> TrashEntry:
    """An entry; ``NotFoundError`` also where it was restored, or is another lab's."""
    entry = TrashEntry.objects.visible_to(user).filter(pk=entry_id).first()
    if entry is None:
        raise NotFoundError("There is no such item in the trash.")
    return entry


def trash_rows(entries: Iterable[TrashEntry]) -> list[TrashRow]:
    """Entries with the data of the page, by a constant number of queries."""
    entries = list(entries)
    ids = [entry.pk for entry in entries]
    cases = Case.all_objects.filter(pk__in={entry.case_id for entry in entries})
    accessions = dict(cases.values_list("pk", "accession"))
    counts = {name: count(ids) for name, count in TRASH_COUNTERS.items()}
    return [
        TrashRow(
            entry=entry,
            accession=accessions.get(entry.case_id, ""),
            holds=_words(entry, {name: count.get(entry.pk, 0) for name, count in counts.items()}),
            purge_at=entry.created_at + timedelta(days=trash_days()),
        )
        for entry in entries
    ]


def slides_in_trash(entry_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Number of slides of each entry."""
    return counts_by_entry(Slide.all_objects.filter(trash_entry__in=entry_ids))


def videos_in_trash(entry_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Number of videos of each entry."""
    return counts_by_entry(Video.all_objects.filter(trash_entry__in=entry_ids))


def counts_by_entry(rows: QuerySet[Any]) -> dict[uuid.UUID, int]:
    """Number of rows of each entry."""
    return dict(rows.order_by().values_list("trash_entry").annotate(number=Count("pk")))


def _words(entry: TrashEntry, counts: Mapping[str, int]) -> str:
    """Counts as text, without the object of the entry itself."""
    return ", ".join(
        f"{count} {name}{'' if count == 1 else 's'}"
        for name, count in counts.items()
        if count and (entry.kind == TrashKind.CASE or name != entry.kind)
    )
