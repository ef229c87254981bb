"""What the present request and the present job are called, for every line that is logged."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_request_id: ContextVar[str] = ContextVar("request_id", default="")
_job_id: ContextVar[str] = ContextVar("job_id", default="")
_SENT = re.compile(r"[A-Za-z0-9._-]{8,64}")


def request_id() -> str:
    """Of the request being answered, or of the one that asked for the job being run."""
    return _request_id.get()


def job_id() -> str:
    """Of the job being run."""
    return _job_id.get()


def request_id_of(sent: str) -> str:
    """What was sent as ``X-Request-ID`` where it is fit to be logged, or a new one."""
    return sent if _SENT.fullmatch(sent) else uuid.uuid4().hex


@contextmanager
def named(*, request: str = "", job: str = "") -> Iterator[None]:
    """Inside, every line carries these."""
    request_token, job_token = _request_id.set(request), _job_id.set(job)
    try:
        yield
    finally:
        _request_id.reset(request_token)
        _job_id.reset(job_token)
