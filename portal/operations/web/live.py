"""``GET /api/v1/canvases/<id>/live/`` without Django: changes, read once for all open pages.

Fifty pages of one canvas poll every second. Session and membership of each are looked up once in
ten seconds, as for tiles. Changes are read about three times a second for all of them, and only
while a page polls. Django answers all other requests: tokens, guests of a shared case, a page's
first poll or a late one, and every canvas on which anything is hidden.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from cachetools import TTLCache
from django.db import Error as DatabaseError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from portal.archive.tiles.permits import RECHECK_S, Credential, user_of_credential
from portal.archive.tiles.server import ReadyAnswer
from portal.core.connections import connection_refresh
from portal.labs.models import Membership
from portal.operations.web.bodies import Scope
from portal.reader_studies.blinding import canvas_is_blind
from portal.review.api.live_updates import KEEP_S, LiveUpdates

FRESH_S = 0.3  # largest age of a response
CLOSED_S = 2.0  # between checks of a canvas that Django answers
MAX_CANVASES = 256  # half a MiB each at most
MAX_PAGE_PERMITS = 4096  # one for each page
_PATH = re.compile(r"/api/v1/canvases/([0-9a-f-]{36})/live/")
_HEADERS = [
    (b"cache-control", b"private, no-cache"),
    (b"vary", b"Cookie, Authorization"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

InThread = Callable[..., Awaitable[Any]]


class LiveQuestion(NamedTuple):
    """Poll request of a page (``static/src/viewer/rois/store/live_updates.ts``)."""

    canvas_id: uuid.UUID
    since: datetime
    tab: uuid.UUID
    cookie: str
    if_none_match: str


def live_question(scope: Scope) -> LiveQuestion | None:
    """Poll of a request, if it may be answered without Django."""
    match = _PATH.fullmatch(scope["path"]) if scope["method"] == "GET" else None
    if match is None:
        return None
    fields = {name: value.decode("latin-1") for name, value in scope["headers"]}
    cookie = fields.get(b"cookie", "")
    is_pages = cookie and fields.get(b"x-unattended") and not fields.get(b"authorization")
    if not is_pages or fields.get(b"x-acting-user"):
        return None
    query = parse_qs(scope["query_string"].decode("latin-1"))
    try:
        since = parse_datetime(query["since"][0])
        tab, canvas_id = uuid.UUID(query["tab"][0]), uuid.UUID(match[1])
    except (KeyError, ValueError):
        return None
    if since is None or since.tzinfo is None:
        return None
    return LiveQuestion(canvas_id, since, tab, cookie, fields.get(b"if-none-match", ""))


class _Canvas:
    """A canvas that clients poll."""

    def __init__(self, canvas_id: uuid.UUID) -> None:
        self.live_updates = LiveUpdates(canvas_id)
        self.is_open = False
        self.until = 0.0  # the updates are fresh until then
        self.looking: asyncio.Future[None] | None = None

    def look(self) -> None:
        """Read new changes, and whether all of the lab may see them. Call in a thread."""
        connection_refresh()
        try:
            self.live_updates.look()
            # Last: blind readers were assigned before they drew anything that was just read.
            is_open = self.live_updates.lab_id is not None and not canvas_is_blind(
                self.live_updates.canvas_id
            )
        finally:
            connection_refresh()
        if not is_open:
            self.live_updates = LiveUpdates(self.live_updates.canvas_id)
        self.is_open = is_open
        self.until = time.monotonic() + (FRESH_S if is_open else CLOSED_S)


class LiveAnswers:
    """Canvases and users of this process. Used by one event loop, which reads in threads."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._canvases: TTLCache[uuid.UUID, _Canvas] = TTLCache(MAX_CANVASES, KEEP_S)
        self._permits: TTLCache[tuple[uuid.UUID, str], uuid.UUID]
        self._permits = TTLCache(MAX_PAGE_PERMITS, RECHECK_S)

    async def answer(self, query: LiveQuestion) -> ReadyAnswer | None:
        """Response; None if Django has to answer."""
        try:
            canvas = await self._canvas(query.canvas_id)
            lab_id = canvas.live_updates.lab_id
            if not canvas.is_open or lab_id is None or not canvas.live_updates.covers(query.since):
                return None
            user_id = await self._member(lab_id, query.cookie)
        except DatabaseError:
            return None
        if user_id is None:
            return None
        answer = canvas.live_updates.answer(since=query.since, user_id=user_id, tab=query.tab)
        headers = [(b"etag", answer.etag.encode()), *_HEADERS]
        if answer.is_known(query.if_none_match, since=query.since, now=timezone.now()):
            return ReadyAnswer(304, headers, b"")
        body = answer.text.encode()
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        return ReadyAnswer(200, headers, body)

    async def _canvas(self, canvas_id: uuid.UUID) -> _Canvas:
        canvas = self._canvases.get(canvas_id) or _Canvas(canvas_id)
        self._canvases[canvas_id] = canvas  # cached from now on, as long as it is requested
        if canvas.until < time.monotonic():
            if canvas.looking is None:  # one request reads, the others wait
                canvas.looking = asyncio.ensure_future(self._in_thread(canvas.look))
                canvas.looking.add_done_callback(lambda _: setattr(canvas, "looking", None))
            await asyncio.shield(canvas.looking)
        return canvas

    async def _member(self, lab_id: uuid.UUID, cookie: str) -> uuid.UUID | None:
        """User of the session, if they are a member of the lab."""
        key = lab_id, cookie
        user_id = self._permits.get(key)
        if user_id is None:
            user_id = await self._in_thread(_member_of, lab_id, cookie)
            if user_id is not None:  # invalid cookies are not cached
                self._permits[key] = user_id
        return user_id


def _member_of(lab_id: uuid.UUID, cookie: str) -> uuid.UUID | None:
    connection_refresh()
    try:
        user = user_of_credential(Credential(cookie, ""))
        if user is None:
            return None
        is_member = Membership.objects.of(user).filter(lab=lab_id).exists()
        return user.pk if is_member else None
    finally:
        connection_refresh()
