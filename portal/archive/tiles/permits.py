"""Who may see a canvas's tiles: looked up in the database now and then, remembered in between.

The address of a tile holds no secret. What opens it is what opens every page: the session's cookie
or an API token, sent with each request.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from importlib import import_module
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError
from django.http import HttpRequest
from django.http.cookie import parse_cookie
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.archive import selectors
from portal.archive.tiles.reading import TilePlane, plane_of
from portal.core.connections import connection_refresh
from portal.core.errors import NotFoundError
from portal.labs.authentication import ApiTokenAuthentication
from portal.labs.models import TokenArea, User
from portal.labs.selectors import second_factor_missing
from portal.labs.session_life import session_is_over

logger = logging.getLogger(__name__)

RECHECK_S = 10.0  # whoever signed out, or is no longer a member, is shut out within this time
MAX_PERMITS = 4096  # one for each person and canvas; a few kB each
CREDENTIAL_CHARS = 2048  # a browser's cookies; longer ones would fill the memory of permits


class Credential(NamedTuple):
    """The headers that say who asks, as they came; both may be empty."""

    cookie: str
    authorization: str


class Permit:
    """What this process knows: the canvas that is opened, or why it is not."""

    __slots__ = ("plane", "recheck_at", "status", "text")

    def __init__(self, plane: TilePlane | None, *, status: int = 200, text: str = "") -> None:
        self.plane = plane
        self.status = status
        self.text = text
        self.recheck_at = time.monotonic() + RECHECK_S


class Permits:
    """The permits of this process. Thread-safe."""

    def __init__(self) -> None:
        self._permits: dict[tuple[str, Credential], Permit] = {}
        self._lock = threading.Lock()

    def known(self, canvas: str, credential: Credential) -> Permit | None:
        """The permit, where it was checked not long ago."""
        permit = self._permits.get((canvas, credential))
        return permit if permit is not None and time.monotonic() < permit.recheck_at else None

    def checked(self, canvas: str, credential: Credential) -> Permit:
        """Look the permission up, and remember it."""
        connection_refresh()
        try:
            permit = _look_up(canvas, credential)
        except DatabaseError:
            logger.exception("tiles: the permission could not be checked")
            return Permit(None, status=503, text="Try again in a moment.")
        finally:
            connection_refresh()
        if permit.plane is not None:  # anybody can invent cookies: only what opens is remembered
            self._remember((canvas, credential), permit)
        else:
            self._permits.pop((canvas, credential), None)
        return permit

    def clear(self) -> None:
        """Forget all (tests)."""
        self._permits.clear()

    def __len__(self) -> int:
        return len(self._permits)

    def _remember(self, key: tuple[str, Credential], permit: Permit) -> None:
        with self._lock:
            while len(self._permits) >= MAX_PERMITS:
                self._permits.pop(next(iter(self._permits)))
            self._permits.pop(key, None)
            self._permits[key] = permit


def _look_up(canvas: str, credential: Credential) -> Permit:
    user = user_of_credential(credential)
    if user is None:
        return Permit(None, status=403, text="Sign in to see this tile.")
    try:
        found = selectors.canvas_get(user=user, canvas_id=uuid.UUID(canvas))
        return Permit(plane_of(found))
    except (ValueError, NotFoundError):
        text = "There is no such canvas, or you may not see it."
        return Permit(None, status=404, text=text)


def user_of_credential(credential: Credential) -> User | None:
    """Whose token or whose session this is, as every page and REST call would have it."""
    if sum(map(len, credential)) > CREDENTIAL_CHARS:
        return None
    request = HttpRequest()
    if credential.authorization:
        request.META["HTTP_AUTHORIZATION"] = credential.authorization
        try:
            found = ApiTokenAuthentication().authenticate(Request(request))
        except AuthenticationFailed:
            return None
        may_look = found is not None and found[1].allows(TokenArea.CASES, writes=False)
        return found[0] if found and may_look else None
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
