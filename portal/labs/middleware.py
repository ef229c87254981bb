"""Ends sessions that lasted too long, and leads to the second factor that a lab asks for."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from portal.labs.selectors import second_factor_missing
from portal.labs.session_life import session_is_over, session_seen

UNATTENDED = "X-Unattended"
"""Sent by a page that asks by itself: an open page alone keeps no session alive."""


class SessionLifeMiddleware:
    """Signs out whoever was idle too long, or signed in too long ago."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """A request without a session's cookie costs nothing."""
        if request.session.session_key is not None:
            if session_is_over(request.session):
                logout(request)
            elif not _asks_by_itself(request):
                session_seen(request.session)
        return self.get_response(request)


def _asks_by_itself(request: HttpRequest) -> bool:
    """By the header, or as an event source, which can send none."""
    asks_for = request.headers.get("Accept", "")
    return UNATTENDED in request.headers or asks_for.startswith("text/event-stream")


class SecondFactorMiddleware:
    """Shows whoever owes a second factor the pages to set one up, and no others.

    The API says so itself (``portal.labs.authentication``): its tokens owe none.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Sign-out, set-up and confirming who one is stay open."""
        user = getattr(request, "user", None)
        free = (reverse("account_login").removesuffix("login/"), "/api/v1/")
        if request.path.startswith(free) or user is None or not user.is_authenticated:
            return self.get_response(request)
        if not second_factor_missing(user):
            return self.get_response(request)
        messages.info(request, "Your lab requires a second factor. Set one up to continue.")
        return redirect("mfa_index")
