"""Writes: API tokens. Each emits an event for the audit log."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from portal.core.api.idempotency import responses_forget
from portal.core.errors import InvalidInputError, NotFoundError
from portal.core.events import event_emit
from portal.labs.hashing import SECRET_BYTES, sha256_of
from portal.labs.models import ApiToken, Lab, TokenArea, TokenScope, User

SECRET_BEGINS = "tess_"  # noqa: S105 - so that scanners for leaked secrets can find ours
PREFIX_LENGTH = 12  # shown to recognise a token; reveals 42 of 256 bits
LONGEST_LIFE = timedelta(days=366)


@transaction.atomic
def token_create(
    user: User,
    *,
    name: str,
    scope: TokenScope,
    expires_in: timedelta,
    lab: Lab | None = None,
    areas: Mapping[str, str] | None = None,
) -> tuple[ApiToken, str]:
    """Create a token, for one lab or for all labs of the user. Emits ``token.created``.

    Args:
        areas: Scope of each area; ``scope`` is then the widest of them. None: ``scope`` everywhere.
    Returns:
        The row, and the secret, which is not stored.
    Raises:
        NotFoundError: the user is not a member of the lab.
        InvalidInputError: no name, an unknown scope or area, or a life not in (0, 366 days].
    """
    name = name.strip()
    if not name or len(name) > 80:
        raise InvalidInputError("A token needs a name of 1 to 80 characters.")
    if scope not in TokenScope.values:
        raise InvalidInputError(f"scope must be one of {', '.join(TokenScope.values)}.")
    if areas:
        _check_areas(areas)
        scope = TokenScope.WRITE if TokenScope.WRITE in areas.values() else TokenScope.READ
    if not timedelta(0) < expires_in <= LONGEST_LIFE:
        raise InvalidInputError("A token must be valid for some time, and for at most 366 days.")
    if lab is not None and not Lab.objects.visible_to(user).filter(pk=lab.pk).exists():
        raise NotFoundError("No such lab.")
    secret = SECRET_BEGINS + secrets.token_urlsafe(SECRET_BYTES)
    token = ApiToken.objects.create(
        user=user,
        lab=lab,
        name=name,
        prefix=secret[:PREFIX_LENGTH],
        sha256=sha256_of(secret),
        scope=scope,
        areas=dict(areas or {}),
        expires_at=timezone.now() + expires_in,
    )
    _note_token("token.created", token)
    return token, secret


@transaction.atomic
def token_revoke(token: ApiToken) -> ApiToken:
    """Revoke a token; a second call changes nothing. Emits ``token.revoked``."""
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at", "updated_at"])
        _note_token("token.revoked", token)
    return token


@transaction.atomic
def tokens_revoke_of(user: User, *, lab: Lab | None = None) -> None:
    """Revoke a user's tokens, or those that reach a lab; forget the answers stored for them."""
    responses_forget(user.pk)
    live = ApiToken.objects.filter(user=user, revoked_at=None)
    for token in live if lab is None else live.filter(Q(lab=lab) | Q(lab=None)):
        token_revoke(token)


def _check_areas(areas: Mapping[str, str]) -> None:
    if set(areas) - set(TokenArea.values) or set(areas.values()) - set(TokenScope.values):
        raise InvalidInputError(
            f"areas: expected some of {', '.join(TokenArea.values)}, each with "
            f"{' or '.join(TokenScope.values)}."
        )


def _note_token(name: str, token: ApiToken) -> None:
    event_emit(
        name,
        lab_id=None,
        payload={"token": str(token.id), "user": str(token.user_id), "scope": _scope(token)},
    )


def _scope(token: ApiToken) -> str:
    return token.rights_text if token.areas else str(token.scope)
