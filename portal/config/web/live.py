"""``GET /api/v1/canvases/<id>/live/`` before Django: changes, read once for all open pages.

Fifty pages of one canvas ask every second. Session and membership are looked up once in ten seconds
for each, as for tiles; what changed is read some three times a second for all of them, and not at
all while nobody asks. Everything else is Django's to answer: tokens, guests of a shared case, a
page's first question or one that lagged behind, and every canvas on which anything is hidden.
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

from django.db import Error as DatabaseError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from portal.archive.tiles.permits import RECHECK_S, Credential, user_of_credential
from portal.archive.tiles.server import ReadyAnswer
from portal.config.web.bodies import Scope
from portal.core.connections import connection_refresh
from portal.labs.models import Membership
from portal.reading.blinding import canvas_is_blind
from portal.review.api.pulse import KEEP_S, CanvasPulse

FRESH_S = 0.3  # of an answer's age; a read takes some hundredths
CLOSED_S = 2.0  # what is not answered here is not looked at more often
MOST_CANVASES = 256  # half a MiB each at most
MOST_PERMITS = 4096  # one for each page
_PATH = re.compile(r"/api/v1/canvases/([0-9a-f-]{36})/live/")
_HEADERS = [
    (b"cache-control", b"private, no-cache"),
    (b"vary", b"Cookie, Authorization"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

InThread = Callable[..., Awaitable[Any]]


class LiveQuestion(NamedTuple):
    """A page's question, as ``static/src/viewer/rois/saved/live.ts`` asks it."""

    canvas_id: uuid.UUID
    since: datetime
    tab: uuid.UUID
    cookie: str
    if_none_match: str


def live_question(scope: Scope) -> LiveQuestion | None:
    """The question of a request, where it may be answered here."""
    found = _PATH.fullmatch(scope["path"]) if scope["method"] == "GET" else None
    if found is None:
        return None
    fields = {name: value.decode("latin-1") for name, value in scope["headers"]}
    cookie = fields.get(b"cookie", "")
    is_pages = cookie and fields.get(b"x-unattended") and not fields.get(b"authorization")
    if not is_pages or fields.get(b"x-acting-user"):
        return None
    asked = parse_qs(scope["query_string"].decode("latin-1"))
    try:
        since = parse_datetime(asked["since"][0])
        tab, canvas_id = uuid.UUID(asked["tab"][0]), uuid.UUID(found[1])
    except (KeyError, ValueError):
        return None
    if since is None or since.tzinfo is None:
        return None
    return LiveQuestion(canvas_id, since, tab, cookie, fields.get(b"if-none-match", ""))


class _Canvas:
    """A canvas that is asked for."""

    def __init__(self, canvas_id: uuid.UUID) -> None:
        self.pulse = CanvasPulse(canvas_id)
        self.is_open = False
        self.until = 0.0  # the pulse is new enough until then
        self.asked_at = 0.0
        self.looking: asyncio.Future[None] | None = None

    def look(self) -> None:
        """In a thread: read what is new, and whether all of the lab may see it."""
        connection_refresh()
        try:
            self.pulse.look()
            # Last: blind readers were assigned before they drew anything that was just read.
            is_open = self.pulse.lab_id is not None and not canvas_is_blind(self.pulse.canvas_id)
        finally:
            connection_refresh()
        if not is_open:
            self.pulse = CanvasPulse(self.pulse.canvas_id)
        self.is_open = is_open
        self.until = time.monotonic() + (FRESH_S if is_open else CLOSED_S)


class LiveAnswers:
    """The canvases and people of this process. Used by one event loop, which reads in threads."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._canvases: dict[uuid.UUID, _Canvas] = {}
        self._permits: dict[tuple[uuid.UUID, str], tuple[uuid.UUID, float]] = {}

    async def answer(self, asked: LiveQuestion) -> ReadyAnswer | None:
        """The answer; None if Django has to answer."""
        try:
            canvas = await self._canvas(asked.canvas_id)
            lab_id = canvas.pulse.lab_id
            if not canvas.is_open or lab_id is None or not canvas.pulse.covers(asked.since):
                return None
            user_id = await self._member(lab_id, asked.cookie)
        except DatabaseError:
            return None
        if user_id is None:
            return None
        told = canvas.pulse.told(since=asked.since, user_id=user_id, tab=asked.tab)
        headers = [(b"etag", told.etag.encode()), *_HEADERS]
        if told.is_known(asked.if_none_match, since=asked.since, now=timezone.now()):
            return ReadyAnswer(304, headers, b"")
        body = told.text.encode()
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        return ReadyAnswer(200, headers, body)

    async def _canvas(self, canvas_id: uuid.UUID) -> _Canvas:
        now = time.monotonic()
        found = self._canvases.get(canvas_id)
        if found is None:
            self._make_room(now)
            found = self._canvases[canvas_id] = _Canvas(canvas_id)
        found.asked_at = now
        if found.until < now:
            if found.looking is None:  # one reads, the others wait for it
                found.looking = asyncio.ensure_future(self._in_thread(found.look))
                found.looking.add_done_callback(lambda _: setattr(found, "looking", None))
            await asyncio.shield(found.looking)
        return found

    def _make_room(self, now: float) -> None:
        for key, canvas in list(self._canvases.items()):
            if now - canvas.asked_at > KEEP_S:
                del self._canvases[key]
        while len(self._canvases) >= MOST_CANVASES:
            self._canvases.pop(next(iter(self._canvases)))

    async def _member(self, lab_id: uuid.UUID, cookie: str) -> uuid.UUID | None:
        """Whose session this is, where they are a member of the lab."""
        key = lab_id, cookie
        user_id, until = self._permits.get(key, (None, 0.0))
        if user_id is None or until < time.monotonic():
            self._permits.pop(key, None)
            user_id = await self._in_thread(_member_of, lab_id, cookie)
            if user_id is not None:  # anybody can invent cookies
                while len(self._permits) >= MOST_PERMITS:
                    self._permits.pop(next(iter(self._permits)))
                self._permits[key] = user_id, time.monotonic() + RECHECK_S
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
