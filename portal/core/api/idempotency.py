"""``Idempotency-Key`` (draft-ietf-httpapi-idempotency-key-header): a write runs once.

Repeating a request with its key returns the first response, another request with the key 422, and
a request during the first 409. A write and its record are one transaction. A view that cannot hold
a transaction during its work first takes a lease on the key in a short one; every event that the
work emits marks the record.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from cryptography.fernet import InvalidToken
from django.db import transaction
from django.utils import timezone
from rest_framework.request import Request

from ml.types import JsonObject
from portal.core.ciphers import decrypt, encrypt
from portal.core.database.locks import transaction_lock, transaction_lock_at_once
from portal.core.errors import ConflictError, InvalidInputError, KeyReusedError
from portal.core.models import Event, IdempotencyRecord

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
RETENTION = timedelta(hours=24)
MAX_BODY_BYTES = 256 * 2**10
"""Largest stored response body; of a larger one only the fact that it was sent is stored."""
RETRY_AFTER_S = 2  # most requests take less
LEASE = timedelta(minutes=2)
"""A slower request can no longer write once it has been sent again."""
_NOT_STORED = frozenset({409, 429, 503})  # the same request may succeed later
_KEY = re.compile(r"[!-~]{8,200}\Z")
_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """Response as it was sent."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_final(self) -> bool:
        """Return whether repeating the request later would give the same response."""
        return self.status not in _NOT_STORED and self.status < 500


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """Request with an idempotency key.

    Attributes:
        person_id: Sender of the request.
        scope: Token or session, method and path, within which the key is unique.
        key: Key chosen by the client.
        fingerprint: SHA-256 of query and body, which must be equal for equal keys.
    """

    person_id: uuid.UUID
    scope: str
    key: str
    fingerprint: str

    @property
    def record_id(self) -> str:
        """Primary key of the record; the client's key cannot be derived from it."""
        return _sha256(f"{self.person_id}\n{self.scope}\n{self.key}")

    @property
    def purpose(self) -> str:
        """Purpose of the cipher, so that reading a response requires the client's key."""
        return f"idempotency record:{self.key}"


@dataclass(frozen=True, slots=True)
class Lease:
    """Right to run the request of a record; another request may take it over once it expired."""

    record_id: str
    token: uuid.UUID


_LEASE: ContextVar[Lease | None] = ContextVar("idempotency_lease", default=None)


def keyed_request(request: Request, key: str) -> KeyedRequest:
    """Read the key's scope and fingerprint of a request; files are hashed in chunks.

    Raises:
        InvalidInputError: The key is too short to be unique, too long, or not visible ASCII.
    """
    if not _KEY.match(key):
        raise InvalidInputError("Idempotency-Key: 8 to 200 visible ASCII characters.")
    query = sorted((name, request.query_params.getlist(name)) for name in request.query_params)
    body: Any = request.data
    if hasattr(body, "read"):
        digest = hashlib.sha256()
        body.seek(0)
        while piece := body.read(_CHUNK_BYTES):
            digest.update(piece)
        body.seek(0)
        body = digest.hexdigest()
    return KeyedRequest(
        person_id=cast(uuid.UUID, request.user.pk),
        scope=f"{getattr(request.auth, 'pk', 'session')} {request.method} {request.path}",
        key=key,
        fingerprint=_sha256(json.dumps([query, body], sort_keys=True, default=str)),
    )


def response_find(keyed: KeyedRequest) -> StoredResponse | None:
    """Stored response; None if the request must be carried out now.

    Call it in the transaction of the work, which locks the key. A rollback frees the key.

    Raises:
        ConflictError: The request is running, or its response is no longer stored.
        KeyReusedError: The key was used for another request.
    """
    if not transaction_lock_at_once(_lock_name(keyed)):
        raise _running()
    record = _record(keyed)
    return None if record is None or _is_free(record) else _stored_response_of(keyed, record)


def response_store(keyed: KeyedRequest, response: StoredResponse) -> None:
    """Store the response, in the transaction of the work."""
    if response.is_final:
        fields = _identity(keyed) | _fields(keyed, response)
        IdempotencyRecord.objects.update_or_create(id=keyed.record_id, defaults=fields)


def lease_take(keyed: KeyedRequest) -> StoredResponse | Lease:
    """Return the stored response or a new lease, for work that spans several transactions.

    A killed request blocks its key until the lease expires; it can then be repeated unless it has
    written something.
    """
    with transaction.atomic():
        transaction_lock(_lock_name(keyed))
        record = _record(keyed)
        if record is not None and not _is_free(record):
            return _stored_response_of(keyed, record)
        lease = Lease(keyed.record_id, uuid.uuid4())
        fields = _identity(keyed) | {"status": None, "headers": {}, "body": ""}
        fields |= {"is_stored": True, "has_effect": False}
        fields |= {"lease_token": lease.token, "lease_until": timezone.now() + LEASE}
        IdempotencyRecord.objects.update_or_create(id=lease.record_id, defaults=fields)
    return lease


@contextmanager
def lease_held(lease: Lease) -> Iterator[None]:
    """Context whose events mark the record; they fail if another request took the lease over."""
    context = _LEASE.set(lease)
    try:
        yield
    finally:
        _LEASE.reset(context)


def effect_mark(_: Sequence[Event]) -> None:
    """Mark the record of the request that emits these events, in their transaction.

    Raises:
        ConflictError: Another request took the lease over; the transaction must be rolled back.
    """
    lease = _LEASE.get()
    if lease is None:
        return
    records = IdempotencyRecord.objects.filter(id=lease.record_id, lease_token=lease.token)
    if not records.update(has_effect=True):
        raise ConflictError(
            "This request took so long that it is carried out again. It changed nothing itself.",
            code="request-taken-over",
        )


def lease_release(keyed: KeyedRequest, lease: Lease, response: StoredResponse | None) -> None:
    """Store the response and end the lease; None if the work failed or cannot be stored.

    The key of a request that wrote nothing and can be repeated is freed.
    """
    with transaction.atomic():
        records = IdempotencyRecord.objects.select_for_update()
        record = records.filter(id=lease.record_id, lease_token=lease.token).first()
        if record is None:
            return  # another request took it over
        is_final = response is not None and response.is_final
        if not is_final and not record.has_effect:
            record.delete()
            return
        fields = _fields(keyed, response or StoredResponse(500, {}, b""))
        if not (is_final and record.is_stored):  # or responses_forget ran since the work began
            fields |= {"headers": {}, "body": "", "is_stored": False}
        IdempotencyRecord.objects.filter(pk=record.pk).update(**fields)


def responses_forget(person_id: uuid.UUID | None = None) -> None:
    """Delete the stored responses of a person whose permissions shrink, or all for an erasure.

    The records remain, so no request is carried out twice.
    """
    records = IdempotencyRecord.objects.all()
    if person_id is not None:
        records = records.filter(person_id=person_id)
    records.update(body="", headers={}, is_stored=False)


def records_sweep() -> int:
    """Delete records older than ``RETENTION``; returns how many."""
    old = IdempotencyRecord.objects.filter(created_at__lte=timezone.now() - RETENTION)
    return old.delete()[0]


def _lock_name(keyed: KeyedRequest) -> str:
    return f"idempotency record:{keyed.record_id}"


def _record(keyed: KeyedRequest) -> IdempotencyRecord | None:
    since = timezone.now() - RETENTION
    record = IdempotencyRecord.objects.filter(id=keyed.record_id, created_at__gt=since).first()
    if record is not None and record.fingerprint != keyed.fingerprint:
        raise KeyReusedError("This Idempotency-Key was used for another request. Choose a new one.")
    return record


def _is_leased(record: IdempotencyRecord) -> bool:
    return record.lease_until is not None and record.lease_until > timezone.now()


def _is_free(record: IdempotencyRecord) -> bool:
    """Return whether a request with a lease died before it wrote anything."""
    is_under_way = record.lease_token is not None
    return is_under_way and not record.has_effect and not _is_leased(record)


def _stored_response_of(keyed: KeyedRequest, record: IdempotencyRecord) -> StoredResponse:
    if record.lease_token is not None and _is_leased(record):
        raise _running()
    try:
        if record.is_stored and record.status is not None:
            body = decrypt(record.body, purpose=keyed.purpose).encode() if record.body else b""
            return StoredResponse(record.status, record.headers, body)
    except InvalidToken:
        pass  # stored under a secret key that the installation no longer has
    raise ConflictError(
        "This request was carried out, and its answer is no longer stored. Read what it changed.",
        code="answer-not-stored",
        details={"answered_status": record.status},
    )


def _running() -> ConflictError:
    return ConflictError(
        "This request is still being carried out.",
        code="request-running",
        details={"retry_after_s": RETRY_AFTER_S},
    )


def _identity(keyed: KeyedRequest) -> JsonObject:
    return {
        "person_id": keyed.person_id,
        "fingerprint": keyed.fingerprint,
        "created_at": timezone.now(),
    }


def _fields(keyed: KeyedRequest, response: StoredResponse) -> JsonObject:
    is_stored = len(response.body) <= MAX_BODY_BYTES
    body = response.body.decode() if is_stored else ""
    return {
        "status": response.status,
        "headers": response.headers,
        "body": encrypt(body, purpose=keyed.purpose) if body else "",
        "is_stored": is_stored,
        "lease_token": None,
        "lease_until": None,
    }


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
