"""Rules of requests: their headers, which are tried again and when, and their errors."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

from tessera_client.problems import TesseraError, problem

TRIES = 5  # of one request: with the pauses below, they bridge some 8 s of a restart
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Doubled with each try; a portal's ``Retry-After`` is respected, up to the longest."""
TRY_AGAIN = frozenset({429, 502, 503, 504})
POLL_S, SLOWEST_POLL_S, POLL_GROWTH = 0.2, 3.0, 1.4
"""Jobs are read often at first, and then less often."""
ROIS_A_REQUEST = 1000  # as many as a page of the list has at most
TUS = {"Tus-Resumable": "1.0.0"}


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as it was read, and the ETag with which a change names that version."""

    path: str
    value: Mapping[str, Any]
    tag: str


def seen_of(path: str, answer: httpx.Response) -> Seen:
    """The object in an answer.

    Raises:
        TesseraError: the answer has no ETag, so the object cannot be changed this way.
    """
    tag = answer.headers.get("ETag")
    if tag is None:
        raise TesseraError(f"{path} has no ETag, so it cannot be read and changed.")
    return Seen(path, answer.json(), tag)


def named(method: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request; a POST gets an idempotency key."""
    key = {"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else {}
    return {**key, **headers}


def is_repeatable(method: str, headers: Mapping[str, str]) -> bool:
    """Whether sending the request twice has the same effect as sending it once."""
    return method in {"GET", "HEAD"} or "Idempotency-Key" in headers


def may_pass(answer: httpx.Response) -> bool:
    """Whether trying again may help, as it does while the portal still works on the request."""
    is_running = answer.status_code == 409 and "Retry-After" in answer.headers
    return is_running or answer.status_code in TRY_AGAIN


def pause_s(tried: int, answer: httpx.Response | None = None) -> float:
    """How long to wait after this many tries."""
    said = answer.headers.get("Retry-After", "") if answer is not None else ""
    wanted = float(said) if said.isdecimal() else FIRST_PAUSE_S * 2.0 ** (tried - 1)
    return min(wanted, LONGEST_PAUSE_S)


def error_of(answer: httpx.Response) -> TesseraError:
    """The error for an answer whose body has been read."""
    try:
        said = answer.json()
    except ValueError:
        said = None
    return problem(answer.status_code, said)


def etag(version: int) -> dict[str, str]:
    """The header that names the version which a write changes."""
    return {"If-Match": f'"{version}"'}


def place_of(link: str) -> dict[str, str]:
    """The parameters of the page that ``next`` leads to; the host stays the same."""
    return {"cursor": httpx.URL(link).params["cursor"]}
