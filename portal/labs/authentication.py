"""Authentication of the API: ``Authorization: Bearer <token>``, or a browser session."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from django.utils import timezone
from rest_framework import authentication as session
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from portal.core.http.bodies import require_csrf
from portal.labs.delegation import BY_A_PERSON, CARRIES
from portal.labs.models import ApiToken, TokenScope, User
from portal.labs.selectors import second_factor_missing

LAST_USED_GRAIN = timedelta(minutes=1)  # one write a minute at most, not one a request


class ApiTokenAuthentication(BaseAuthentication):
    """Authenticate by the token's SHA-256; refuse expired and revoked tokens with the reason."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the owner and the token, or None without a bearer token."""
        scheme, _, secret = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        token = (
            ApiToken.objects.select_related("user")
            .filter(sha256=hashlib.sha256(secret.strip()).hexdigest())
            .first()
        )
        if token is None or not token.user.is_active:
            raise AuthenticationFailed("This token is not known.", code="token-unknown")
        if token.revoked_at is not None:
            raise AuthenticationFailed("This token was revoked.", code="token-revoked")
        now = timezone.now()
        if token.expires_at <= now:
            raise AuthenticationFailed("This token has expired.", code="token-expired")
        if token.last_used_at is None or now - token.last_used_at > LAST_USED_GRAIN:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        token.user.only_lab_id = token.lab_id
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Make DRF answer 401 rather than 403."""
        return 'Bearer realm="tessera"'


class SessionAuthentication(session.SessionAuthentication):
    """Authenticate by a browser session.

    The CSRF token is read from the header ``X-CSRFToken`` only: DRF would look for it in the body,
    and so read an upload before any other check.
    """

    def enforce_csrf(self, request: Request) -> None:
        """Refuse cross-site requests."""
        require_csrf(request._request)

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        """Authenticate by session; refuse a user without a required second factor, as pages do.

        A page sends the user it was rendered for: a request from a page of one user is never
        executed as another who has signed in since.
        """
        authenticated: tuple[User, None] | None = super().authenticate(request)
        acting = request.headers.get("X-Acting-User")
        if authenticated is not None and acting is not None and acting != str(authenticated[0].pk):
            raise AuthenticationFailed(
                "Someone else is signed in in this browser.", code="other-user"
            )
        if authenticated is not None and second_factor_missing(authenticated[0]):
            raise PermissionDenied(
                "Your lab requires a second factor. Set one up in the portal first.",
                code="second-factor-missing",
            )
        return authenticated


class SignedInWithScope(BasePermission):
    """Require a user, and a token whose scope and areas allow the request.

    A view names its ``area`` (``TokenArea``). A view without one is closed to tokens limited to
    areas, unless it sets ``any_area = True``. A view whose POST changes nothing (a search) sets
    ``reads_by_post = True``.
    """

    message = "This token may only read."
    code = "token-scope"

    def has_permission(self, request: Request, view: Any) -> bool:
        """Check session or token."""
        if not request.user.is_authenticated:
            return False
        token = request.auth
        if not isinstance(token, ApiToken):
            return True
        if not self._may_hand_on(request, token):
            return False
        reads = request.method in SAFE_METHODS or (
            request.method == "POST" and getattr(view, "reads_by_post", False)
        )
        if not token.areas or getattr(view, "any_area", False):
            return reads or token.scope == TokenScope.WRITE
        area = getattr(view, "area", None)
        self.message = (
            f"This token may not {'read' if reads else 'write'} here: {token.rights_text}."
        )
        self.code = "token-area"
        return token.allows(area, writes=not reads)

    def _may_hand_on(self, request: Request, token: ApiToken) -> bool:
        """Apply the rules of ``portal.labs.delegation``."""
        match = request._request.resolver_match
        act = (match.view_name if match else "", str(request.method))
        if act in BY_A_PERSON:
            self.message = (
                "Sign in with a session: a token cannot create accounts, service accounts "
                "or tokens, nor change roles."
            )
            self.code = "session-required"
            return False
        needs = CARRIES.get(act, {}) if token.areas else {}
        lacking = [
            area
            for area, scope in needs.items()
            if not token.allows(area, writes=scope == TokenScope.WRITE)
        ]
        if lacking:
            self.message = (
                "This carries data of areas that the token has no right to: "
                f"{', '.join(lacking)}. It has {token.rights_text}."
            )
            self.code = "token-area"
        return not lacking
