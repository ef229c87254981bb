"""Representation of an entry, and its hash in the chain."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC

from django.core.exceptions import ObjectDoesNotExist

from ml.types import JsonObject
from portal.audit.models import AuditEntry

FIELDS = (
    *("id", "at", "lab", "actor", "token", "action", "outcome", "kind", "object", "case"),
    *("address", "details", "number", "previous", "hash"),
)
GENESIS = "0" * 64
"""Previous hash of the first seal in a chain."""


def seal_hash(entry: AuditEntry, *, number: int, previous: str) -> str:
    """SHA-256 of all fields of an entry, its position, and the previous hash.

    Hashes a JSON array of fixed order, with times in UTC to the microsecond, the precision of both
    databases.
    """
    parts = [
        number,
        previous,
        entry.pk,
        entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        str(entry.lab_id),
        *(str(part) if part else "" for part in (entry.actor_id, entry.token_id)),
        entry.action,
        str(entry.outcome),
        entry.kind,
        *(str(part) if part else "" for part in (entry.object_id, entry.case_id)),
        entry.address,
        entry.details,
    ]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def entry_represent(entry: AuditEntry) -> JsonObject:
    """Representation of an entry; query it together with its ``seal``."""
    try:
        seal = entry.seal
    except ObjectDoesNotExist:
        seal = None
    return {
        "id": entry.pk,
        "at": entry.at.isoformat(),
        "lab": str(entry.lab_id),
        "actor": str(entry.actor_id) if entry.actor_id else None,
        "token": str(entry.token_id) if entry.token_id else None,
        "action": entry.action,
        "outcome": str(entry.outcome),
        "kind": entry.kind,
        "object": str(entry.object_id) if entry.object_id else None,
        "case": str(entry.case_id) if entry.case_id else None,
        "address": entry.address,
        "details": entry.details,
        "number": seal.number if seal else None,
        "previous": seal.previous if seal else None,
        "hash": seal.hash if seal else None,
    }
