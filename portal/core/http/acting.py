"""The request that is being answered, for what has to know who acts: the audit log."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.http import HttpRequest

_NOW: ContextVar[HttpRequest | None] = ContextVar("request_now", default=None)


@contextmanager
def acting(request: HttpRequest) -> Iterator[None]:
    """While this lasts, ``request_now`` gives the request."""
    token = _NOW.set(request)
    try:
        yield
    finally:
        _NOW.reset(token)


def request_now() -> HttpRequest | None:
    """The request being answered; None in a worker or a command."""
    return _NOW.get()


def about(request: Any, object_id: uuid.UUID) -> None:
    """Say which object a request concerns, where its address does not: as in a search."""
    getattr(request, "_request", request).audited_id = object_id
