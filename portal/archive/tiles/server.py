"""Tiles before Django: ``GET /tiles/<canvas>/<content>/<z>/<x>/<y>.jpg``.

A viewer asks for hundreds of tiles a second. Session, user and membership would be looked up for
each; here they are looked up once in ten seconds for each person and canvas.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from portal.archive.tiles.cache import ByteCache
from portal.archive.tiles.permits import Credential, Permit, Permits
from portal.archive.tiles.reading import MEDIA_TYPE, TilePlane, has_tile, tile_etag, tile_read
from portal.core.errors import PortalError
from portal.core.observe.metrics import TILES_FROM_FILE, TILES_FROM_MEMORY

logger = logging.getLogger(__name__)

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Headers = list[tuple[str, str]]
Answer = tuple[str, Headers, bytes]

PREFIX = "/tiles/"
MEMORY_BYTES = 64 * 2**20  # some 3,000 tiles of 20 kB per process
IMMUTABLE = "private, max-age=31536000, immutable"
_TEXT: Headers = [
    ("Content-Type", "text/plain; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
]
_NO_TILE = "This canvas has no such tile, or it cannot be read."


class TileRequest(NamedTuple):
    """What of a request the tile server looks at."""

    method: str
    path: str
    credential: Credential
    if_none_match: str = ""


class TileServer:
    """Answers tile requests; one per process, shared by its threads."""

    def __init__(self) -> None:
        self.permits = Permits()
        self._answers: ByteCache[Answer] = ByteCache(MEMORY_BYTES)

    def at_once(self, request: TileRequest) -> Answer | None:
        """The answer where it takes neither the database nor a file; None if it does."""
        if request.method not in ("GET", "HEAD"):
            allow = ("Allow", "GET, HEAD")
            return _refused("405 Method Not Allowed", "Tiles can only be read.", allow)
        canvas, tail = _split(request.path)
        permit = self.permits.known(canvas, request.credential)
        if permit is None or permit.plane is None:
            return None
        found = self._answers.get(canvas + tail)
        if found is None:
            return None
        TILES_FROM_MEMORY.inc()
        return _conditional(found, request.if_none_match)

    def answer(self, request: TileRequest) -> Answer:
        """Status line, headers and body of a request below ``/tiles/``."""
        ready = self.at_once(request)
        if ready is not None:
            return ready
        canvas, tail = _split(request.path)
        permit = self.permits.known(canvas, request.credential)
        # another picture than was permitted: the display range may have been set since
        if permit is None or not _is_of(permit.plane, tail):
            permit = self.permits.checked(canvas, request.credential)
        if permit.plane is None:
            return _refused(permit.status, permit.text)
        return _conditional(self._made(canvas, tail, permit), request.if_none_match)

    def clear(self) -> None:
        """Forget permits and tiles (tests)."""
        self.permits.clear()
        self._answers.clear()

    def _made(self, canvas: str, tail: str, permit: Permit) -> Answer:
        """Read a tile and keep its ready answer, or say why there is none."""
        plane = permit.plane
        zxy = _parse(plane, tail) if plane else None
        if plane is None or zxy is None or not has_tile(plane, *zxy):
            return _refused("404 Not Found", _NO_TILE)
        try:
            data = tile_read(plane, *zxy)
        except PortalError:
            logger.exception("tiles: %s of %s cannot be read", tail, plane.path)
            return _refused("503 Service Unavailable", _NO_TILE)
        headers = [
            ("Content-Type", MEDIA_TYPE),
            ("Content-Length", str(len(data))),
            ("ETag", tile_etag(plane, *zxy)),
            ("Cache-Control", IMMUTABLE),
            ("Vary", "Cookie, Authorization"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ]
        answer = ("200 OK", headers, data)
        TILES_FROM_FILE.inc()
        self._answers.put(canvas + tail, answer, len(data) + 1024)
        return answer


class TileFastPath:
    """WSGI: tiles are answered here, everything else by the application behind."""

    def __init__(self, application: Wsgi) -> None:
        self.application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """WSGI."""
        path = environ["PATH_INFO"]
        if not path.startswith(PREFIX):
            return self.application(environ, start_response)
        request = TileRequest(
            environ["REQUEST_METHOD"],
            path,
            Credential(environ.get("HTTP_COOKIE", ""), environ.get("HTTP_AUTHORIZATION", "")),
            environ.get("HTTP_IF_NONE_MATCH", ""),
        )
        status, headers, body = TILES.answer(request)
        start_response(status, headers.copy())
        return () if request.method == "HEAD" else (body,)


TILES = TileServer()


def _is_of(plane: TilePlane | None, tail: str) -> bool:
    return plane is not None and tail.startswith(f"{plane.key}/")


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


def _conditional(answer: Answer, if_none_match: str) -> Answer:
    """304 where the client holds these bytes already."""
    status, headers, _ = answer
    if not (if_none_match and status.startswith("200")):
        return answer
    etag = headers[2][1]
    if etag in if_none_match or if_none_match == "*":
        return "304 Not Modified", headers[2:], b""
    return answer


def _refused(status: str, text: str, *extra: tuple[str, str]) -> Answer:
    body = (text + "\n").encode()
    return status, [*_TEXT, *extra, ("Content-Length", str(len(body)))], body
