"""Access to the current request, which the audit log needs to know the actor."""

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
    """Make a request available by ``request_now`` inside the context."""
    token = _NOW.set(request)
    try:
        yield
    finally:
        _NOW.reset(token)


def request_now() -> HttpRequest | None:
    """Current request; None in a worker or a command."""
    return _NOW.get()


def set_audited_id(request: Any, object_id: uuid.UUID) -> None:
    """Set the object that a request concerns if its URL does not name it."""
    getattr(request, "_request", request).audited_id = object_id
