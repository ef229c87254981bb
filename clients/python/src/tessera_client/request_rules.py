"""Rules of requests: headers, retries, and errors of responses."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

from tessera_client.errors import TesseraError, problem

MAX_ATTEMPTS = 5  # of one request: with the pauses below, they bridge some 8 s of a restart
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Doubled with each attempt; a portal's ``Retry-After`` is respected, up to the longest."""
RETRY_STATUSES = frozenset({429, 502, 503, 504})
POLL_S, SLOWEST_POLL_S, POLL_GROWTH = 0.2, 3.0, 1.4
"""Jobs are read often at first, and then less often."""
ROIS_A_REQUEST = 1000  # as many as a page of the list has at most
TUS = {"Tus-Resumable": "1.0.0"}


@dataclass(frozen=True, slots=True)
class VersionedObject:
    """An object as it was read, with the ETag to send as ``If-Match`` when changing it."""

    path: str
    value: Mapping[str, Any]
    tag: str


def versioned_object(path: str, response: httpx.Response) -> VersionedObject:
    """Read the object in a response.

    Raises:
        TesseraError: the response has no ETag, so the object cannot be changed this way.
    """
    tag = response.headers.get("ETag")
    if tag is None:
        raise TesseraError(f"{path} has no ETag, so it cannot be read and changed.")
    return VersionedObject(path, response.json(), tag)


def request_headers(method: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Headers of a request; a POST gets an idempotency key."""
    key = {"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else {}
    return {**key, **headers}


def is_repeatable(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether sending the request twice has the same effect as sending it once."""
    return method in {"GET", "HEAD"} or "Idempotency-Key" in headers


def is_transient(response: httpx.Response) -> bool:
    """Return whether to retry: a busy server, or a first attempt that is still being processed."""
    is_running = response.status_code == 409 and "Retry-After" in response.headers
    return is_running or response.status_code in RETRY_STATUSES


def pause_s(attempts: int, response: httpx.Response | None = None) -> float:
    """Seconds to wait after this many attempts."""
    data = response.headers.get("Retry-After", "") if response is not None else ""
    pause = float(data) if data.isdecimal() else FIRST_PAUSE_S * 2.0 ** (attempts - 1)
    return min(pause, LONGEST_PAUSE_S)


def error_of(response: httpx.Response) -> TesseraError:
    """Error for a response whose body has been read."""
    try:
        data = response.json()
    except ValueError:
        data = None
    return problem(response.status_code, data)


def if_match(version: int) -> dict[str, str]:
    """``If-Match`` header: the write fails if the object is no longer at ``version``."""
    return {"If-Match": f'"{version}"'}


def cursor_params(link: str) -> dict[str, str]:
    """Query parameters of the page at ``next``; the host stays the same."""
    return {"cursor": httpx.URL(link).params["cursor"]}
