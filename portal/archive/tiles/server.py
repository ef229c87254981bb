"""Tiles before Django: ``GET /tiles/<grant>/<z>/<x>/<y>.jpg``.

A viewer asks for hundreds of tiles a second. Session, user and membership would be looked up for
each; here the signed grant in the address is verified once and its permission is checked against
the database every 30 s, so that a revoked membership shuts the door within that time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from django.db import DatabaseError

from portal.archive import selectors
from portal.archive.tiles.cache import ByteCache
from portal.archive.tiles.grants import GrantError, grant_read
from portal.archive.tiles.reading import (
    MEDIA_TYPE,
    TilePlane,
    has_tile,
    plane_of,
    tile_etag,
    tile_read,
)
from portal.core.connections import connection_refresh
from portal.core.errors import NotFoundError, PortalError

logger = logging.getLogger(__name__)

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Headers = list[tuple[str, str]]
Answer = tuple[str, Headers, bytes]

PREFIX = "/tiles/"
RECHECK_S = 30.0  # a revoked membership shuts the door within it
MAX_GRANTS = 4096  # about 4 MB; a viewer holds one grant per canvas
MEMORY_BYTES = 64 * 2**20  # some 3,000 tiles of 20 kB per process
IMMUTABLE = "private, max-age=31536000, immutable"
_TEXT: Headers = [
    ("Content-Type", "text/plain; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
]


class _Permit:
    """A grant seen by this process: the canvas it opens, or why it opens none (no reason: the
    database did not answer).
    """

    __slots__ = ("denied", "expires_s", "plane", "recheck_at")

    def __init__(self, plane: TilePlane | None, denied: str, expires_s: float) -> None:
        self.plane = plane
        self.denied = denied
        self.expires_s = expires_s
        self.recheck_at = time.monotonic() + RECHECK_S

    def refusal(self) -> Answer:
        """Why it opens nothing."""
        if self.plane is None and not self.denied:
            return _refused("503 Service Unavailable", "Try again in a moment.")
        if self.plane is None:
            return _refused("404 Not Found", self.denied)
        return _refused("403 Forbidden", "This tile address has expired; reload the page.")


class TileServer:
    """Answers tile requests; one per process, shared by its threads."""

    def __init__(self) -> None:
        self._permits: dict[str, _Permit] = {}
        self._lock = threading.Lock()
        self._answers: ByteCache[tuple[str, Headers, bytes]] = ByteCache(MEMORY_BYTES)

    def answer(self, method: str, path: str, if_none_match: str) -> Answer:
        """Status line, headers and body of a request below ``/tiles/``."""
        if method not in ("GET", "HEAD"):
            return _refused(
                "405 Method Not Allowed", "Tiles are only read.", ("Allow", "GET, HEAD")
            )
        token, _, tail = path[len(PREFIX) :].partition("/")
        permit = self._permits.get(token)
        if permit is None or time.monotonic() >= permit.recheck_at:
            permit = self._checked(token)
        if permit.plane is None or time.time() >= permit.expires_s:
            return permit.refusal()
        key = permit.plane.key + tail
        found = self._answers.get(key) or self._made(permit.plane, tail, key)
        if isinstance(found, str):
            return _refused(found, "This canvas has no such tile, or it cannot be read.")
        etag, headers, data = found
        if if_none_match and (etag in if_none_match or if_none_match == "*"):
            return "304 Not Modified", headers[2:], b""
        return "200 OK", headers, data

    def clear(self) -> None:
        """Forget permits and tiles (tests)."""
        self._permits.clear()
        self._answers.clear()

    def _checked(self, token: str) -> _Permit:
        """Verify the token and look the permission up; remembered for 30 s, denials too."""
        try:
            grant = grant_read(token)
        except GrantError:  # not remembered: anyone can invent tokens
            return _Permit(None, "There is no such tile address.", 0)
        connection_refresh()
        try:
            canvas = selectors.canvas_of_grant(user_id=grant.user_id, canvas_id=grant.canvas_id)
            permit = _Permit(plane_of(canvas), "", grant.expires_s)
        except NotFoundError as error:
            permit = _Permit(None, error.message, grant.expires_s)
        except DatabaseError:
            logger.exception("tiles: the permission could not be checked")
            return _Permit(None, "", 0)
        finally:
            connection_refresh()
        with self._lock:
            while len(self._permits) >= MAX_GRANTS:
                self._permits.pop(next(iter(self._permits)))
            self._permits.pop(token, None)
            self._permits[token] = permit
        return permit

    def _made(self, plane: TilePlane, tail: str, key: str) -> tuple[str, Headers, bytes] | str:
        """Read a tile and keep its ready answer, or the status that says why there is none."""
        zxy = _parse(tail)
        if zxy is None or not has_tile(plane, *zxy):
            return "404 Not Found"
        try:
            data = tile_read(plane, *zxy)
        except PortalError:
            logger.exception("tiles: %s of %s cannot be read", tail, plane.path)
            return "503 Service Unavailable"
        etag = tile_etag(plane, *zxy)
        headers = [
            ("Content-Type", MEDIA_TYPE),
            ("Content-Length", str(len(data))),
            ("ETag", etag),
            ("Cache-Control", IMMUTABLE),
            ("X-Content-Type-Options", "nosniff"),
        ]
        self._answers.put(key, (etag, headers, data), len(data) + 1024)
        return etag, headers, data


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
        method = environ["REQUEST_METHOD"]
        status, headers, body = TILES.answer(method, path, environ.get("HTTP_IF_NONE_MATCH", ""))
        start_response(status, headers.copy())
        return (body,) if method == "GET" else ()


TILES = TileServer()


def _parse(tail: str) -> tuple[int, int, int] | None:
    """``z/x/y.jpg`` in its one spelling."""
    parts = tail.removesuffix(".jpg").split("/")
    if len(parts) != 3 or not all(part.isdecimal() and len(part) < 10 for part in parts):
        return None
    z, x, y = (int(part) for part in parts)
    return (z, x, y) if f"{z}/{x}/{y}.jpg" == tail else None


def _refused(status: str, text: str, *extra: tuple[str, str]) -> Answer:
    body = (text + "\n").encode()
    return status, [*_TEXT, *extra, ("Content-Length", str(len(body)))], body
