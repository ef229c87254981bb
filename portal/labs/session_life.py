"""Lifetime of a session: an idle limit and an absolute limit."""

from __future__ import annotations

import time

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase

BEGAN, SEEN = "began_at", "seen_at"  # seconds since 1970, in the session
GRAIN_S = 60.0  # one write a minute at most, not one a request


def session_start(session: SessionBase) -> None:
    """Start the limits of a session at sign-in."""
    session[BEGAN] = session[SEEN] = time.time()


def session_is_over(session: SessionBase) -> bool:
    """Return whether a session has exceeded its idle or absolute limit."""
    if SESSION_KEY not in session:
        return False
    now = time.time()
    idle, life = settings.TESSERA_SESSION_IDLE_S, settings.SESSION_COOKIE_AGE
    return bool(now - session.get(SEEN, now) > idle or now - session.get(BEGAN, now) > life)


def session_seen(session: SessionBase) -> bool:
    """Record activity; return whether the session must be saved."""
    now = time.time()
    if SESSION_KEY not in session or now - session.get(SEEN, 0.0) < GRAIN_S:
        return False
    session[SEEN] = now
    session.setdefault(BEGAN, now)  # a session of an earlier version has none
    return True
