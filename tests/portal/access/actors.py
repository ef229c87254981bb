"""Users for whom every access rule has an answer, as clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http.response import HttpResponseBase
from django.test import Client
from django.test.client import ClientHandler

from portal.labs.models import Lab, Membership, Role, TokenScope, User
from portal.labs.services.tokens import token_create
from tests.clients import client_of

ACTORS = (
    "anonymous",
    "deactivated",  # a member whose account was switched off, with a session from before
    "deactivated_token",  # and with a token from before
    "unknown_token",
    "stranger",  # a manager of another lab
    "stranger_token",  # with a token that may write
    "removed",  # no longer a member of any lab
    "viewer",
    "annotator",
    "reviewer",
    "manager",
    "viewer_token",  # may write, as far as a viewer may
    "read_token",  # of a manager
    "write_token",  # of a manager
)
LOGIN = "sign-in"


@dataclass
class Cast:
    """The people, their sessions and their tokens."""

    users: dict[str, User] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    handlers: dict[bool, ClientHandler] = field(default_factory=dict)

    def client(self, actor: str, **options: Any) -> Client:
        """A fresh client that is signed in as the actor."""
        headers = {}
        if secret := self.secrets.get(actor):
            headers["Authorization"] = f"Bearer {secret}"
        client = Client(raise_request_exception=True, headers=headers, **options)
        is_strict = options.get("enforce_csrf_checks", False)  # middleware is loaded once for each
        client.handler = self.handlers.setdefault(is_strict, client.handler)
        if cookie := self.cookies.get(actor):
            client.cookies[settings.SESSION_COOKIE_NAME] = cookie
        return client


def cast_of(lab: Lab, other_lab: Lab) -> Cast:
    """One of each."""
    cast = Cast()
    for role in Role:
        _session(cast, str(role), _person(str(role), lab, role))
    _session(cast, "stranger", _person("stranger", other_lab, Role.MANAGER))
    _session(cast, "removed", _person("removed", None, Role.MANAGER))
    deactivated = _person("deactivated", lab, Role.MANAGER)
    _session(cast, "deactivated", deactivated)
    _token(cast, "deactivated_token", deactivated, TokenScope.WRITE)
    User.objects.filter(pk=deactivated.pk).update(is_active=False)
    _token(cast, "stranger_token", cast.users["stranger"], TokenScope.WRITE)
    _token(cast, "viewer_token", cast.users["viewer"], TokenScope.WRITE)
    _token(cast, "read_token", cast.users["manager"], TokenScope.READ)
    _token(cast, "write_token", cast.users["manager"], TokenScope.WRITE)
    cast.secrets["unknown_token"] = "tess_" + "0" * 43
    return cast


def answer_of(response: HttpResponseBase) -> str | int:
    """The status; ``LOGIN`` where the answer is the way to the sign-in page."""
    location = response.headers.get("Location", "")
    if response.status_code == 302 and location.startswith("/accounts/login/"):
        return LOGIN
    return response.status_code


def send(
    client: Client, method: str, path: str, *, body: Any = None, headers: Mapping[str, str] = {}
) -> HttpResponseBase:
    """One request: JSON or a CSV file to the API, a form or files to everything else.

    A change says that it is made of whatever is there, unless ``headers`` say otherwise.
    """
    if method in {"PUT", "PATCH"}:
        headers = {"If-Match": "*"} | dict(headers)
    call: Callable[..., HttpResponseBase] = getattr(client, method.lower())
    if isinstance(body, bytes):
        return call(path, body, content_type="text/csv", headers=headers)
    if method == "GET":
        return call(path, body or {}, headers=headers)
    is_form = not path.startswith("/api/") or any(hasattr(v, "read") for v in (body or {}).values())
    if is_form and method == "POST":
        return call(path, body or {}, headers=headers)
    return call(path, body or {}, content_type="application/json", headers=headers)


def _person(name: str, lab: Lab | None, role: Role) -> User:
    user = User.objects.create_user(f"{name}@access.example", "correct horse battery")
    if lab is not None:
        Membership.objects.create(user=user, lab=lab, role=role)
    return user


def _session(cast: Cast, actor: str, user: User) -> None:
    client = client_of(user)
    cast.users[actor] = user
    cast.cookies[actor] = client.cookies[settings.SESSION_COOKIE_NAME].value


def _token(cast: Cast, actor: str, user: User, scope: TokenScope) -> None:
    _, secret = token_create(user, name=actor, scope=scope, expires_in=timedelta(days=1))
    cast.users[actor] = user
    cast.secrets[actor] = secret
