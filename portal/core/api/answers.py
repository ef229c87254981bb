"""Answers kept under the keys of their requests: a request sent again is not carried out again."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass
from datetime import timedelta

from cryptography.fernet import InvalidToken
from django.db import transaction
from django.utils import timezone

from ml.types import JsonObject
from portal.core.ciphers import decrypt, encrypt
from portal.core.database.locks import transaction_lock, transaction_lock_at_once
from portal.core.errors import ConflictError, InvalidInputError, KeyReusedError
from portal.core.models import KeptAnswer
from portal.core.reserved import Reservation

KEPT = timedelta(hours=24)
LARGEST_BYTES = 256 * 2**10
"""Of a body; of a larger answer only the fact that it was given is kept."""
NOT_KEPT = frozenset({409, 429, 503})
"""Statuses that mean "not now": the same request may be carried out later."""
RETRY_AFTER_S = 2  # most requests have ended by then
HELD = timedelta(minutes=2)
"""How long a request that works apart keeps others off; one that takes longer loses its right to
write as soon as it is sent again."""
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
    """The earlier answer to this request; None if it is to be carried out now.

    Call in the transaction that carries it out: a second one is kept out until it ends. If that
    dies, even by a kill, nothing was done, and the key is free again.

    Raises:
        ConflictError: it is being carried out, or was, and its answer is no longer there.
        KeyReusedError: the key stands for another request.
    """
    if not transaction_lock_at_once(_lock(asked)):
        raise _running()
    row = _row(asked)
    return None if row is None or _is_free(row) else _replay(asked, row)


def answer_keep(asked: NamedRequest, answer: Replay) -> None:
    """Keep the answer for a day, in the transaction of the work that it reports."""
    if not _is_kept(answer):
        return
    known = {"person_id": asked.person_id, "digest": asked.digest}
    fields = known | _fields(asked, answer) | {"created_at": timezone.now()}
    KeptAnswer.objects.update_or_create(name=asked.name, defaults=fields)


def answer_reserve(asked: NamedRequest) -> Replay | Reservation:
    """As ``answer_begin``, in a transaction of its own: what follows is carried out apart.

    The key is held for ``HELD``. Whoever dies in this time leaves it held until then. Afterwards
    the request may be carried out again, unless it had written something: then it is refused, as
    one whose answer is no longer there.
    """
    with transaction.atomic():
        transaction_lock(_lock(asked))
        row = _row(asked)
        if row is not None and not _is_free(row):
            return _replay(asked, row)
        held = Reservation(asked.name, uuid.uuid4())
        now = timezone.now()
        fields = {"person_id": asked.person_id, "digest": asked.digest, "created_at": now}
        fields |= {"status": None, "headers": {}, "body": "", "is_whole": True}
        fields |= {"holder": held.holder, "held_until": now + HELD, "has_effect": False}
        KeptAnswer.objects.update_or_create(name=asked.name, defaults=fields)
    return held


def answer_settle(asked: NamedRequest, held: Reservation, answer: Replay | None) -> None:
    """Keep the answer to what was carried out apart; None: it broke off by a bug.

    A request that wrote nothing and may be sent again gives its key back.
    """
    with transaction.atomic():
        mine = KeptAnswer.objects.select_for_update()
        row = mine.filter(name=held.name, holder=held.holder).first()
        if row is None:
            return  # another took it over
        is_kept = answer is not None and _is_kept(answer)
        if not is_kept and not row.has_effect:
            row.delete()
            return
        fields = _fields(asked, answer or Replay(500, {}, b""))
        if not (is_kept and row.is_whole):  # or the person may see less since it began
            fields |= {"headers": {}, "body": "", "is_whole": False}
        KeptAnswer.objects.filter(pk=row.pk).update(**fields)


def _is_free(row: KeptAnswer) -> bool:
    """Whoever carried it out is gone, and had written nothing."""
    return row.holder is not None and not row.has_effect and not _is_held(row)


def _is_held(row: KeptAnswer) -> bool:
    return row.held_until is not None and row.held_until > timezone.now()


def _is_kept(answer: Replay) -> bool:
    return answer.status not in NOT_KEPT and answer.status < 500


def _lock(asked: NamedRequest) -> str:
    return f"kept answer:{asked.name}"


def _row(asked: NamedRequest) -> KeptAnswer | None:
    """What is known of the request; raises ``KeyReusedError`` where it was another one."""
    row = KeptAnswer.objects.filter(pk=asked.name, created_at__gt=timezone.now() - KEPT).first()
    if row is not None and row.digest != asked.digest:
        raise KeyReusedError("This Idempotency-Key was used for another request. Take a new one.")
    return row


def _running() -> ConflictError:
    return ConflictError(
        "This request is still being carried out.",
        code="request-running",
        details={"retry_after_s": RETRY_AFTER_S},
    )


def _replay(asked: NamedRequest, row: KeptAnswer) -> Replay:
    """The answer; raises ``ConflictError`` where it is not there yet, or no longer."""
    if row.holder is not None and _is_held(row):
        raise _running()
    try:
        if row.is_whole and row.status is not None:
            body = decrypt(row.body, purpose=asked.purpose).encode() if row.body else b""
            return Replay(row.status, row.headers, body)
    except InvalidToken:
        pass  # kept under a secret key that the installation no longer has
    raise ConflictError(
        "This request was carried out, and its answer is no longer kept. Read what it changed.",
        code="answer-not-kept",
        details={"answered_status": row.status},
    )


def _fields(asked: NamedRequest, answer: Replay) -> JsonObject:
    """As the row keeps an answer."""
    fits = len(answer.body) <= LARGEST_BYTES
    body = answer.body.decode() if fits else ""
    return {
        "status": answer.status,
        "headers": answer.headers,
        "body": encrypt(body, purpose=asked.purpose) if body else "",
        "is_whole": fits,
        "holder": None,
        "held_until": None,
    }


def answers_forget(person_id: uuid.UUID | None = None) -> None:
    """Forget the answers to one person, who may see less from now on, or to everybody, for an
    erasure. That the requests were carried out is kept: none is carried out twice.
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
