"""Ids of the current request and job for log lines."""

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
    """Id of the request being answered, or of the one that submitted the running job."""
    return _request_id.get()


def job_id() -> str:
    """Id of the running job."""
    return _job_id.get()


def request_id_of(header: str) -> str:
    """Value of ``X-Request-ID`` if it is safe to log, else a new id."""
    return header if _SENT.fullmatch(header) else uuid.uuid4().hex


@contextmanager
def log_ids(*, request: str = "", job: str = "") -> Iterator[None]:
    """Context in which log lines carry these ids."""
    request_token, job_token = _request_id.set(request), _job_id.set(job)
    try:
        yield
    finally:
        _request_id.reset(request_token)
        _job_id.reset(job_token)
