"""Tiles before Django: ``GET /tiles/<canvas>/<content>/<z>/<x>/<y>.jpg``, as an ASGI application.

A viewer asks for hundreds of tiles a second. Session, user and membership would be looked up for
each; here they are looked up once in ten seconds for each person and canvas.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from cachetools import LRUCache
from django.utils.http import parse_etags

from portal.archive.tiles.permits import Credential, Permit, Permits
from portal.archive.tiles.reading import MEDIA_TYPE, TilePlane, has_tile, tile_etag, tile_read
from portal.core.errors import PortalError
from portal.core.observe.metrics import TILES_FROM_FILE, TILES_FROM_MEMORY

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Headers = list[tuple[bytes, bytes]]

PREFIX = "/tiles/"
MEMORY_BYTES = 64 * 2**20  # some 3,000 tiles of 20 kB per process
IMMUTABLE = "private, max-age=31536000, immutable"
THREADS = 3  # decoding releases the interpreter's lock
_TEXT: Headers = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
_NO_TILE = "This canvas has no such tile, or it cannot be read."


class TileRequest(NamedTuple):
    """The parts of a request that the tile server uses."""

    method: str
    path: str
    credential: Credential
    if_none_match: str = ""


class ReadyAnswer(NamedTuple):
    """An answer as ASGI has it."""

    status: int
    headers: Headers
    body: bytes


class TileServer:
    """Answers tile requests; one per process, shared by its threads."""

    def __init__(self) -> None:
        self.permits = Permits()
        self._answers: LRUCache[str, ReadyAnswer]
        self._answers = LRUCache(MEMORY_BYTES, getsizeof=lambda answer: len(answer.body) + 1024)
        self._lock = threading.Lock()

    def answer_from_memory(self, request: TileRequest) -> ReadyAnswer | None:
        """Answer from memory; None if it needs the database or a file."""
        if request.method not in ("GET", "HEAD"):
            return _error_answer(405, "Tiles can only be read.", (b"allow", b"GET, HEAD"))
        canvas, tail = _split(request.path)
        permit = self.permits.known(canvas, request.credential)
        if permit is None or permit.plane is None:
            return None
        with self._lock:
            answer = self._answers.get(canvas + tail)
        if answer is None:
            return None
        TILES_FROM_MEMORY.inc()
        return _conditional(answer, request.if_none_match)

    def answer(self, request: TileRequest) -> ReadyAnswer:
        """Status line, headers and body of a request below ``/tiles/``."""
        ready = self.answer_from_memory(request)
        if ready is not None:
            return ready
        canvas, tail = _split(request.path)
        permit = self.permits.known(canvas, request.credential)
        if permit is None:
            permit = self.permits.checked(canvas, request.credential)
        # The permit is for another picture: the display range may have changed.
        if permit.plane is not None and not tail.startswith(f"{permit.plane.key}/"):
            permit = self.permits.renewed(canvas, request.credential)
        if permit.plane is None:
            return _error_answer(permit.status, permit.text)
        return _conditional(self._render_answer(canvas, tail, permit), request.if_none_match)

    def clear(self) -> None:
        """Forget permits and tiles (tests)."""
        self.permits.clear()
        with self._lock:
            self._answers.clear()

    def _render_answer(self, canvas: str, tail: str, permit: Permit) -> ReadyAnswer:
        """Read a tile and keep its ready answer, or say why there is none."""
        plane = permit.plane
        zxy = _parse(plane, tail) if plane else None
        if plane is None or zxy is None or not has_tile(plane, *zxy):
            return _error_answer(404, _NO_TILE)
        try:
            data = tile_read(plane, *zxy)
        except PortalError:
            logger.exception("tiles: %s of %s cannot be read", tail, plane.path)
            return _error_answer(503, _NO_TILE)
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", b"%d" % len(data)),
            (b"etag", tile_etag(plane, *zxy).encode()),
            (b"cache-control", IMMUTABLE.encode()),
            (b"vary", b"Cookie, Authorization"),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]
        answer = ReadyAnswer(200, headers, data)
        TILES_FROM_FILE.inc()
        with self._lock, suppress(ValueError):  # larger than the memory
            self._answers[canvas + tail] = answer
        return answer


async def tile_application(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """ASGI: answer from memory at once, from the database or a file in a thread."""
    fields = {name: value.decode("latin-1") for name, value in scope["headers"]}
    request = TileRequest(
        scope["method"],
        scope["path"],
        Credential(fields.get(b"cookie", ""), fields.get(b"authorization", "")),
        fields.get(b"if-none-match", ""),
    )
    answer = TILES.answer_from_memory(request)
    if answer is None:
        answer = await in_thread(TILES.answer, request)
    await send_answer(answer, send)


async def in_thread(call: Callable[..., Result], *args: Any) -> Result:
    """Run a call that may block on a file or the database in a thread."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, call, *args)


async def send_answer(answer: ReadyAnswer, send: Any) -> None:
    """Send an answer by ASGI."""
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": answer.body})


TILES = TileServer()
_THREADS = ThreadPoolExecutor(THREADS, thread_name_prefix="tile")


def _split(path: str) -> tuple[str, str]:
    canvas, _, tail = path[len(PREFIX) :].partition("/")
    return canvas, tail


def _parse(plane: TilePlane, tail: str) -> tuple[int, int, int] | None:
    """``content/z/x/y.jpg`` in its one spelling; None if the content is not this one."""
    parts = tail.removesuffix(".jpg").split("/")
    if len(parts) != 4 or not all(part.isdecimal() and len(part) < 10 for part in parts[1:]):
        return None
    z, x, y = (int(part) for part in parts[1:])
    return (z, x, y) if f"{plane.key}/{z}/{x}/{y}.jpg" == tail else None


def _conditional(answer: ReadyAnswer, if_none_match: str) -> ReadyAnswer:
    """304 where the client holds these bytes already."""
    if not (if_none_match and answer.status == 200):
        return answer
    tags = [tag.removeprefix("W/") for tag in parse_etags(if_none_match)]
    if "*" in tags or answer.headers[2][1].decode() in tags:
        return ReadyAnswer(304, answer.headers[2:], b"")
    return answer


def _error_answer(status: int, text: str, *extra: tuple[bytes, bytes]) -> ReadyAnswer:
    body = (text + "\n").encode()
    return ReadyAnswer(status, [*_TEXT, *extra, (b"content-length", b"%d" % len(body))], body)
