"""Reads of the audit log."""

from __future__ import annotations

import datetime
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from django.db.models import QuerySet

from portal.audit.chain import GENESIS, seal_hash
from portal.audit.models import AuditEntry, AuditSeal
from portal.labs.models import Lab, User

CHUNK = 2000  # rows in memory while the whole log is read


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Filter of the log; None or empty matches everything."""

    actor_id: uuid.UUID | None = None
    action: str = ""
    object_id: uuid.UUID | None = None
    case_id: uuid.UUID | None = None
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """Last seal of a chain; a stored copy proves later that no entry was cut off."""

    lab_id: uuid.UUID
    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Break:
    """First broken link of a chain."""

    number: int
    reason: str


def entry_list(user: User, *, lab: Lab, filters: EntryFilter | None = None) -> QuerySet[AuditEntry]:
    """Entries of the lab, newest first; none unless the user manages the lab."""
    entries: QuerySet[AuditEntry] = AuditEntry.objects.visible_to(user).filter(lab_id=lab.pk)
    filters = filters or EntryFilter()
    exact = {
        "actor_id": filters.actor_id,
        "action": filters.action or None,
        "object_id": filters.object_id,
        "case_id": filters.case_id,
        "at__gte": filters.since,
        "at__lt": filters.until,
    }
    entries = entries.filter(**{name: value for name, value in exact.items() if value is not None})
    return entries.select_related("seal").order_by("-id")


def people_names(ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Names of accounts, including people who left the lab."""
    return {user.pk: str(user) for user in User.objects.filter(pk__in=ids)} if ids else {}


def chain_head(lab_id: uuid.UUID) -> Head | None:
    """Last seal of a lab; None if nothing was sealed yet."""
    seal = AuditSeal.objects.filter(lab_id=lab_id).order_by("-number").first()
    return Head(lab_id, seal.number, seal.hash) if seal else None


def chain_labs() -> list[uuid.UUID]:
    """Labs that have entries or seals."""
    tables = (AuditEntry, AuditSeal)
    lab_ids = {pk for t in tables for pk in t.objects.order_by().values_list("lab_id").distinct()}
    return sorted(pk for (pk,) in lab_ids)


def chain_break(lab_id: uuid.UUID, *, expected: Iterable[Head] = ()) -> Break | None:
    """First broken link, or None if the whole chain is valid.

    Args:
        expected: Heads of this lab that were stored elsewhere; all must be part of the chain.
    """
    expected_hashes: defaultdict[int, set[str]] = defaultdict(set)
    for head in expected:
        expected_hashes[head.number].add(head.hash)
    number, previous = 0, GENESIS
    for seal, entry in _links(lab_id):
        if reason := _wrong(seal, entry, after=number, previous=previous):
            return Break(number + 1, reason)
        number, previous = seal.number, seal.hash
        if expected_hashes.pop(number, {previous}) != {previous}:
            return Break(number, "it differs from the head that was kept")
    if expected_hashes:
        return Break(
            number + 1, f"the chain ends before number {max(expected_hashes)}, which was kept"
        )
    return None


def _wrong(seal: AuditSeal, entry: AuditEntry | None, *, after: int, previous: str) -> str:
    """Reason why a link of the chain is invalid; empty if it is valid."""
    if seal.number != after + 1:
        return "its seal is missing"
    if seal.previous != previous:
        return "it does not follow the one before it"
    if entry is None:
        return "its entry is missing"
    is_same = seal.hash == seal_hash(entry, number=seal.number, previous=previous)
    return "" if is_same and entry.lab_id == seal.lab_id else "its entry was changed"


def _links(lab_id: uuid.UUID) -> Iterator[tuple[AuditSeal, AuditEntry | None]]:
    """Seals in order with their entries, in chunks."""
    after = 0
    while True:
        seals = AuditSeal.objects.filter(lab_id=lab_id, number__gt=after).order_by("number")
        page = list(seals[:CHUNK])
        if not page:
            return
        entries = AuditEntry.objects.in_bulk([seal.entry_id for seal in page])
        for seal in page:
            yield seal, entries.get(seal.entry_id)
        after = page[-1].number
