"""Writes: sessions of people."""

from __future__ import annotations

from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from portal.core.http.clients import client_address
from portal.labs.browsers import browser_name
from portal.labs.models import BrowserSession, User
from portal.labs.session_life import session_start


def session_begin(request: HttpRequest, user: User) -> None:
    """Note a sign-in, for the person's list of sessions and for the session's end."""
    session_start(request.session)
    session_note(request, user)


def session_note(request: HttpRequest, user: User) -> None:
    """Note the session's present key: signing in and a new password change it."""
    if not request.session.session_key:
        return
    BrowserSession.objects.update_or_create(
        session_key=request.session.session_key,
        defaults={
            "user": user,
            "address": client_address(request),
            "browser": browser_name(str(request.META.get("HTTP_USER_AGENT") or "")),
        },
    )


def session_end(session: BrowserSession) -> None:
    """Sign out there."""
    Session.objects.filter(session_key=session.session_key).delete()
    session.delete()


def sessions_end_of(user: User, *, but: str | None = None) -> int:
    """Sign out everywhere except in the session with that key; returns how many ended."""
    ended = BrowserSession.objects.filter(user=user).exclude(session_key=but or "")
    count: int = Session.objects.filter(session_key__in=ended.values("session_key")).delete()[0]
    ended.delete()
    return count


def sessions_sweep() -> int:
    """Delete sessions that have expired, and what was noted of them; daily."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    live = Session.objects.values("session_key")
    return BrowserSession.objects.exclude(session_key__in=live).delete()[0]
