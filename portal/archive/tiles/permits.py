"""Permission to view a canvas's tiles, read from the database and cached for a few seconds.

The URL of a tile holds no secret. Access needs what every page needs: the session's cookie or an
API token, sent with each request.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from typing import NamedTuple

from cachetools import TTLCache
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError
from django.http import HttpRequest
from django.http.cookie import parse_cookie
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.archive.selectors.canvases import canvas_get
from portal.archive.tiles.reading import TilePlane, plane_of
from portal.core.connections import connection_refresh
from portal.core.errors import NotFoundError
from portal.labs.authentication import ApiTokenAuthentication
from portal.labs.models import TokenArea, User
from portal.labs.selectors import second_factor_missing
from portal.labs.session_life import session_is_over

logger = logging.getLogger(__name__)

RECHECK_S = 10.0  # people who signed out or left the lab lose access within this time
MAX_PERMITS = 4096  # one for each person and canvas; a few kB each
CREDENTIAL_CHARS = 2048  # a browser's cookies; longer ones would fill the memory of permits


class Credential(NamedTuple):
    """The headers that say who asks, as they came; both may be empty."""

    cookie: str
    authorization: str


class Permit(NamedTuple):
    """The canvas that is opened, or why it is not."""

    plane: TilePlane | None
    status: int = 200
    text: str = ""


class Permits:
    """The permits of this process. Thread-safe."""

    def __init__(self, *, timer: Callable[[], float] = time.monotonic) -> None:
        self._permits: TTLCache[tuple[str, Credential], Permit]
        self._permits = TTLCache(MAX_PERMITS, RECHECK_S, timer)
        self._running: dict[tuple[str, Credential], Future[Permit]] = {}
        self._lock = threading.Lock()

    def known(self, canvas: str, credential: Credential) -> Permit | None:
        """The permit, where it was checked not long ago."""
        with self._lock:
            return self._permits.get((canvas, credential))

    def checked(self, canvas: str, credential: Credential) -> Permit:
        """Look the permission up, once for all requests that wait for it: a page sends ten."""
        key = canvas, credential
        with self._lock:
            running = self._running.get(key)
            if running is None:
                future = self._running[key] = Future()
        if running is not None:
            return running.result()
        try:
            future.set_result(self.renewed(canvas, credential))
        except BaseException as error:
            future.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._running[key]
        return future.result()

    def renewed(self, canvas: str, credential: Credential) -> Permit:
        """Look the permission up now, and remember it."""
        connection_refresh()
        try:
            permit = _look_up(canvas, credential)
        except DatabaseError:
            logger.exception("tiles: the permission could not be checked")
            return Permit(None, status=503, text="Try again in a moment.")
        finally:
            connection_refresh()
        with self._lock:
            # Anybody can invent cookies: only permits that open a canvas are kept.
            if permit.plane is not None:
                self._permits[canvas, credential] = permit
            else:
                self._permits.pop((canvas, credential), None)
        return permit

    def clear(self) -> None:
        """Forget all (tests)."""
        with self._lock:
            self._permits.clear()

    def __len__(self) -> int:
        return len(self._permits)


def _look_up(canvas: str, credential: Credential) -> Permit:
    user = user_of_credential(credential)
    if user is None:
        return Permit(None, status=403, text="Sign in to see this tile.")
    try:
        canvas_row = canvas_get(user=user, canvas_id=uuid.UUID(canvas))
        return Permit(plane_of(canvas_row))
    except (ValueError, NotFoundError):
        text = "There is no such canvas, or you may not see it."
        return Permit(None, status=404, text=text)


def user_of_credential(credential: Credential) -> User | None:
    """User of a token or a session, by the same rules as for pages and REST calls."""
    if sum(map(len, credential)) > CREDENTIAL_CHARS:
        return None
    request = HttpRequest()
    if credential.authorization:
        request.META["HTTP_AUTHORIZATION"] = credential.authorization
        try:
            authenticated = ApiTokenAuthentication().authenticate(Request(request))
        except AuthenticationFailed:
            return None
        may_look = authenticated is not None and authenticated[1].allows(
            TokenArea.CASES, writes=False
        )
        return authenticated[0] if authenticated and may_look else None
    return _session_user(request, credential.cookie)


def _session_user(request: HttpRequest, cookie: str) -> User | None:
    """User of a session; None where a second factor is owed, as on every page."""
    key = parse_cookie(cookie).get(settings.SESSION_COOKIE_NAME)
    if not key:
        return None
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    if session_is_over(request.session):
        return None
    user = get_user(request)
    if isinstance(user, AnonymousUser):  # as a closed account is
        return None
    return None if second_factor_missing(user) else user
