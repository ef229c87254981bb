"""A request whose work and answer are not one transaction: what it writes shows it was done."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from portal.core.errors import ConflictError
from portal.core.models import KeptAnswer


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right to carry out the request of this name, until somebody else takes it over."""

    name: str
    holder: uuid.UUID


_HELD: ContextVar[Reservation | None] = ContextVar("reservation", default=None)


@contextmanager
def reserved(held: Reservation) -> Iterator[None]:
    """Everything within is done for this request; events fail once it was taken over."""
    token = _HELD.set(held)
    try:
        yield
    finally:
        _HELD.reset(token)


def effect_note() -> None:
    """Note in the transaction of an event that the request behind it was carried out.

    Raises:
        ConflictError: it took so long that it was taken over; the transaction must be undone.
    """
    held = _HELD.get()
    if held is None:
        return
    rows = KeptAnswer.objects.filter(name=held.name, holder=held.holder)
    if not rows.update(has_effect=True):
        raise ConflictError(
            "This request took so long that it is carried out again. It changed nothing itself.",
            code="request-taken-over",
        )
