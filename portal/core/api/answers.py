"""Answers kept under the keys of their requests: a request sent again is not carried out again."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass
from datetime import timedelta

from cryptography.fernet import InvalidToken
from django.utils import timezone

from portal.core.ciphers import decrypt, encrypt
from portal.core.database.locks import transaction_lock_at_once
from portal.core.errors import ConflictError, InvalidInputError, KeyReusedError
from portal.core.models import KeptAnswer

KEPT = timedelta(hours=24)
LARGEST_BYTES = 256 * 2**10
"""Of a body; of a larger answer it is only kept that it was given."""
NOT_KEPT = frozenset({409, 429, 503})
"""Not now: the same request may be carried out later."""
RETRY_AFTER_S = 2  # most requests have ended by then
_KEY = re.compile(r"[!-~]{8,200}\Z")


@dataclass(frozen=True, slots=True)
class Replay:
    """What was answered, as it went out."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class NamedRequest:
    """A request that its client can send again.

    Attributes:
        person_id: who sent it.
        place: which token or session it came by, its method and its path: each has keys of its own.
        key: what the client named it.
        text: all that it asks for; the same key must not ask for something else.
    """

    person_id: uuid.UUID
    place: str
    key: str
    text: str

    @property
    def name(self) -> str:
        """What the answer is kept by."""
        return _sha256(f"{self.person_id}\n{self.place}\n{self.key}")

    @property
    def digest(self) -> str:
        """Of what was asked for."""
        return _sha256(self.text)

    @property
    def purpose(self) -> str:
        """Of the cipher: the client's key is a part of it."""
        return f"kept answer:{self.key}"


def key_checked(key: str) -> str:
    """The client's ``Idempotency-Key``.

    Raises:
        InvalidInputError: too short to be unique, too long, or not of visible ASCII.
    """
    if not _KEY.match(key):
        raise InvalidInputError("Idempotency-Key: 8 to 200 visible ASCII characters.")
    return key


def answer_begin(asked: NamedRequest) -> Replay | None:
    """What this request was answered before; None where it is to be carried out now.

    Call in the transaction that carries it out: a second one is kept out until it ends. Where that
    dies, by a kill too, nothing was done, and the key is free again.

    Raises:
        ConflictError: it is being carried out, or was, and its answer is no longer there.
        KeyReusedError: the key stands for another request.
    """
    if not transaction_lock_at_once(f"kept answer:{asked.name}"):
        raise ConflictError(
            "This request is still being carried out.",
            code="request-running",
            details={"retry_after_s": RETRY_AFTER_S},
        )
    row = KeptAnswer.objects.filter(pk=asked.name, created_at__gt=timezone.now() - KEPT).first()
    if row is None:
        return None
    if row.digest != asked.digest:
        raise KeyReusedError("This Idempotency-Key was used for another request. Choose a new one.")
    try:
        if row.is_whole:
            body = decrypt(row.body, purpose=asked.purpose).encode() if row.body else b""
            return Replay(row.status, row.headers, body)
    except InvalidToken:
        pass  # kept under a secret key that the installation no longer has
    raise ConflictError(
        (
            "This request was carried out, but its answer is no longer kept. Read the object that "
            "it concerned."
        ),
        code="answer-not-kept",
        details={"answered_status": row.status},
    )


def answer_keep(asked: NamedRequest, answer: Replay) -> None:
    """Keep it for a day, in the transaction of what it tells of."""
    if answer.status in NOT_KEPT or answer.status >= 500:
        return
    fits = len(answer.body) <= LARGEST_BYTES
    body = answer.body.decode() if fits else ""
    KeptAnswer.objects.update_or_create(
        name=asked.name,
        defaults={
            "person_id": asked.person_id,
            "digest": asked.digest,
            "status": answer.status,
            "headers": answer.headers,
            "body": encrypt(body, purpose=asked.purpose) if body else "",
            "is_whole": fits,
            "created_at": timezone.now(),
        },
    )


def answers_forget(person_id: uuid.UUID | None = None) -> None:
    """Forget what one person was answered, who may see less from now on; or everybody, for an
    erasure. That their requests were carried out stays: none is carried out twice.
    """
    rows = KeptAnswer.objects.all()
    if person_id is not None:
        rows = rows.filter(person_id=person_id)
    rows.update(body="", headers={}, is_whole=False)


def answers_sweep() -> int:
    """Delete what is older than a day; returns how many."""
    return KeptAnswer.objects.filter(created_at__lte=timezone.now() - KEPT).delete()[0]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
