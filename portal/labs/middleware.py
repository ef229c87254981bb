"""End sessions that lasted too long, and require the second factor that a lab asks for."""

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
"""Header of automatic requests: an open page does not keep a session alive."""


class SessionLifeMiddleware:
    """Sign out users after the idle or the absolute limit of a session."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """End an expired session; requests without a session cookie are passed on."""
        if request.session.session_key is not None:
            if session_is_over(request.session):
                logout(request)
            elif not _asks_by_itself(request):
                session_seen(request.session)
        return self.get_response(request)


def _asks_by_itself(request: HttpRequest) -> bool:
    """Return whether the page sent the request automatically: by the header, or as an event source,
    which cannot send headers."""
    asks_for = request.headers.get("Accept", "")
    return UNATTENDED in request.headers or asks_for.startswith("text/event-stream")


class SecondFactorMiddleware:
    """Redirect users without a required second factor to the pages that set one up.

    The API checks this itself (``portal.labs.authentication``): its tokens require none.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Redirect, except to sign-out, set-up and confirmation of the user's identity."""
        user = getattr(request, "user", None)
        free = (reverse("account_login").removesuffix("login/"), "/api/v1/")
        if request.path.startswith(free) or user is None or not user.is_authenticated:
            return self.get_response(request)
        if not second_factor_missing(user):
            return self.get_response(request)
        messages.info(request, "Your lab requires a second factor. Set one up to continue.")
        return redirect("mfa_index")
