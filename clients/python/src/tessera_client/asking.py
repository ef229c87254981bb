"""What a request needs beside its address: which are tried again, when, and what an error says."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

from tessera_client.problems import TesseraError, problem

TRIES = 5  # of one request: with the pauses below some 8 seconds of a portal that restarts
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Doubled from try to try; a portal's own ``Retry-After`` is heeded up to the longest."""
TRY_AGAIN = frozenset({429, 502, 503, 504})
POLL_S, SLOWEST_POLL_S, POLL_GROWTH = 0.2, 3.0, 1.4
"""Jobs are looked at often at first, and then less and less."""
ROIS_A_REQUEST = 1000  # as many as a page of the list has at most
TUS = {"Tus-Resumable": "1.0.0"}


@dataclass(frozen=True, slots=True)
class Seen:
    """What stood at an address when it was read, and the tag by which a change names it."""

    path: str
    value: Mapping[str, Any]
    tag: str


def seen_of(path: str, answer: httpx.Response) -> Seen:
    """What an answer says of the object there.

    Raises:
        TesseraError: it has no ETag, by which a change could name it.
    """
    tag = answer.headers.get("ETag")
    if tag is None:
        raise TesseraError(f"{path} has no ETag: it is not edited by read and change.")
    return Seen(path, answer.json(), tag)


def named(method: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request, with a key of its own where it makes something."""
    key = {"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else {}
    return {**key, **headers}


def is_repeatable(method: str, headers: Mapping[str, str]) -> bool:
    """Whether the same request twice does no more than once."""
    return method in {"GET", "HEAD"} or "Idempotency-Key" in headers


def may_pass(answer: httpx.Response) -> bool:
    """Whether a refusal is for now: also of a request that the portal is still carrying out."""
    is_running = answer.status_code == 409 and "Retry-After" in answer.headers
    return is_running or answer.status_code in TRY_AGAIN


def pause_s(tried: int, answer: httpx.Response | None = None) -> float:
    """How long to wait after so many tries."""
    said = answer.headers.get("Retry-After", "") if answer is not None else ""
    wanted = float(said) if said.isdecimal() else FIRST_PAUSE_S * 2.0 ** (tried - 1)
    return min(wanted, LONGEST_PAUSE_S)


def error_of(answer: httpx.Response) -> TesseraError:
    """The error that an answer, read before, stands for."""
    try:
        said = answer.json()
    except ValueError:
        said = None
    return problem(answer.status_code, said)


def etag(version: int) -> dict[str, str]:
    """The header by which a write names the version that it was made from."""
    return {"If-Match": f'"{version}"'}


def place_of(link: str) -> dict[str, str]:
    """Where the page that ``next`` leads to begins. The host asked before is asked again."""
    return {"cursor": httpx.URL(link).params["cursor"]}
