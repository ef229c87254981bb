"""Writes of the audit log: entries, and the seals that chain them."""

from __future__ import annotations

import hmac
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TypedDict, Unpack

from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpRequest

from portal.audit.chain import GENESIS, seal_hash
from portal.audit.models import INSTALLATION, AuditEntry, AuditSeal, Outcome
from portal.core.http.acting import request_now
from portal.core.http.clients import client_address
from portal.labs.models import ApiToken, Membership

Details = Mapping[str, str | int | bool]
SEAL_AT_ONCE = 2000  # entries of one transaction
LATE_BY = 20_000
"""Largest lag of a late-committed entry's id behind the newest sealed one."""


class EntryFields(TypedDict, total=False):
    """Optional fields of an entry; ``actor_id`` is used if there is no request."""

    kind: str
    object_id: uuid.UUID | None
    case_id: uuid.UUID | None
    actor_id: uuid.UUID | None
    outcome: Outcome
    details: Details


def entry_note(action: str, *, lab_ids: Iterable[uuid.UUID], **fields: Unpack[EntryFields]) -> None:
    """Add an entry to the log of each lab, or of the installation if there is none.

    The actor is taken from the current request, or else from ``actor_id``. One insert, in the
    caller's transaction.
    """
    AuditEntry.objects.bulk_create(entries_for(action, lab_ids=lab_ids, **fields))


def entries_for(
    action: str, *, lab_ids: Iterable[uuid.UUID], **fields: Unpack[EntryFields]
) -> list[AuditEntry]:
    """Entries that ``entry_note`` would add, for callers that insert many at once."""
    request = request_now()
    token = getattr(request, "auth", None)
    user = getattr(request, "user", None)
    actor_id = fields.get("actor_id")
    if user is not None and user.is_authenticated:
        actor_id = user.pk
    return [
        AuditEntry(
            lab_id=lab_id,
            actor_id=actor_id,
            token_id=token.pk if isinstance(token, ApiToken) else None,
            action=action,
            outcome=fields.get("outcome", Outcome.DONE),
            kind=fields.get("kind", ""),
            object_id=fields.get("object_id"),
            case_id=fields.get("case_id"),
            address=_address(request),
            details=dict(fields.get("details", {})),
        )
        for lab_id in (tuple(lab_ids) or (INSTALLATION,))
    ]


def labs_of(user_id: uuid.UUID) -> list[uuid.UUID]:
    """Labs in whose logs a user's own actions are recorded: sign-ins, tokens, lists."""
    memberships = Membership.objects.filter(user_id=user_id).order_by("lab_id")
    return list(memberships.values_list("lab_id", flat=True))


def keyed_hash(text: str) -> str:
    """Keyed hash that replaces a text in the log; equal texts, ignoring case, have equal hashes."""
    key = sha256(b"tessera.audit:" + settings.SECRET_KEY.encode()).digest()
    return hmac.new(key, text.strip().lower().encode(), sha256).hexdigest()[:16]


def entries_seal() -> int:
    """Append new entries, ``SEAL_AT_ONCE`` at most, to their labs' chains.

    Safe to run concurrently: the database lets one of two through. Returns the number of sealed
    entries.
    """
    newest = AuditSeal.objects.order_by("-entry_id").values_list("entry_id", flat=True).first()
    return _seal(_waiting(after=(newest or 0) - LATE_BY))


def entries_seal_all() -> int:
    """Seal all entries committed before the call, so that each chain ends with its log.

    Returns the number of entries that this call sealed.
    """
    sealed = 0
    while entries := _waiting():
        sealed += _seal(entries)
    return sealed


def _waiting(*, after: int = 0) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(seal=None, pk__gt=after).order_by("id")[:SEAL_AT_ONCE])


def _seal(entries: Iterable[AuditEntry]) -> int:
    chains: defaultdict[uuid.UUID, list[AuditEntry]] = defaultdict(list)
    for entry in entries:
        chains[entry.lab_id].append(entry)
    return sum(_chain_on(lab_id, of_lab) for lab_id, of_lab in chains.items())


def _chain_on(lab_id: uuid.UUID, entries: list[AuditEntry]) -> int:
    last = AuditSeal.objects.filter(lab_id=lab_id).order_by("-number").first()
    number, previous = (last.number, last.hash) if last else (0, GENESIS)
    seals = []
    for entry in entries:
        number += 1
        seal = seal_hash(entry, number=number, previous=previous)
        seals.append(
            AuditSeal(lab_id=lab_id, number=number, entry=entry, previous=previous, hash=seal)
        )
        previous = seal
    try:
        with transaction.atomic():
            AuditSeal.objects.bulk_create(seals)
    except IntegrityError:  # another process sealed these, or earlier ones
        return 0
    return len(seals)


def _address(request: HttpRequest | None) -> str:
    return client_address(request)[:45] if request is not None else ""
