"""Writes: browser sessions."""

from __future__ import annotations

from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from portal.core.http.clients import client_address
from portal.labs.browsers import browser_name
from portal.labs.models import BrowserSession, User
from portal.labs.session_life import session_start


def session_begin(request: HttpRequest, user: User) -> None:
    """Record a sign-in, for the list of sessions and the limits of the session."""
    session_start(request.session)
    session_note(request, user)


def session_note(request: HttpRequest, user: User) -> None:
    """Record the session's present key, which sign-in and a new password change."""
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
    """Sign out a session."""
    Session.objects.filter(session_key=session.session_key).delete()
    session.delete()


def sessions_end_of(user: User, *, but: str | None = None) -> int:
    """Sign out all sessions except the one with that key; return how many ended."""
    ended = BrowserSession.objects.filter(user=user).exclude(session_key=but or "")
    count: int = Session.objects.filter(session_key__in=ended.values("session_key")).delete()[0]
    ended.delete()
    return count


def sessions_sweep() -> int:
    """Delete expired sessions and their ``BrowserSession`` rows; runs daily."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    live = Session.objects.values("session_key")
    return BrowserSession.objects.exclude(session_key__in=live).delete()[0]
