"""Account adapter: sign-up, passwords and rate limits."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from portal.core.errors import TooManyRequestsError
from portal.core.http.clients import client_address, client_network
from portal.labs.models import User
from portal.labs.selectors import invitations_for
from portal.labs.services.accounts import password_set
from portal.labs.services.attempts import (
    DEVICE_LIFETIME,
    TOO_MANY_ATTEMPTS,
    attempt_begin,
    attempt_forget,
    device_remember,
)

DEVICE_COOKIE = "tessera_device"
RECLAIMED = (
    "This account was made before you proved that its address is yours. Its earlier password, "
    "sign-ins, API tokens and second factors no longer work: choose a new password under Password."
)


class LabAccountAdapter(DefaultAccountAdapter):
    """Close sign-up, and revoke earlier access when the password changes."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "too_many_login_attempts": TOO_MANY_ATTEMPTS
    }
    _rows: list[int] | None = None

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False: accounts are created by invitation only."""
        return False

    def set_password(self, user: User, password: str) -> None:
        """Set the password for every page that changes, resets or sets it."""
        password_set(user, password)

    def pre_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse | None:
        """Refuse service accounts, by every way of signing in."""
        response: HttpResponse | None = super().pre_login(request, user, **kwargs)
        if response is None and user.is_service:
            response = self.respond_user_inactive(request, user)
        return response

    def get_client_ip(self, request: HttpRequest) -> str:
        """Client address behind the configured number of proxies; never raises."""
        return client_address(request)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count the attempt before the password is checked."""
        try:
            self._rows = attempt_begin(
                email=str(credentials.get("email", "")),
                network=client_network(request),
                device=request.COOKIES.get(DEVICE_COOKIE, ""),
            )
        except TooManyRequestsError:
            raise self.validation_error("too_many_login_attempts") from None

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Authenticate; a right password uncounts its own attempt only."""
        user: User | None = super().authenticate(request, **credentials)
        if user is not None and self._rows:
            attempt_forget(self._rows)
        return user

    def reauthenticate(self, user: User, password: str) -> bool:
        """Authenticate by the e-mail address that the user signs in with."""
        authenticated = self.authenticate(self.request, email=user.email, password=password)
        return authenticated is not None and authenticated.pk == user.pk

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        """Remember the browser, so that attempts from elsewhere do not slow this user."""
        response: HttpResponse = super().post_login(request, user, **kwargs)
        if user.was_reclaimed:
            messages.warning(request, RECLAIMED)
        goes_home = response.headers.get("Location") == settings.LOGIN_REDIRECT_URL
        if goes_home and invitations_for(user).exists():
            response = redirect("labs:invitation")
        response.set_cookie(
            DEVICE_COOKIE,
            device_remember(user, device=request.COOKIES.get(DEVICE_COOKIE, "")),
            max_age=int(DEVICE_LIFETIME.total_seconds()),
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
        return response
