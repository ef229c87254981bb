"""Writes: labs, people, roles, API tokens.

``by`` is the person who acts and must be a manager of the lab; ``None`` is the installation itself
(set-up commands, tests). Each write leaves an event: together they are the audit trail.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import ApiToken, Lab, Membership, Role, TokenScope, User
from portal.labs.rules import require_role

SECRET_BEGINS = "tess_"  # noqa: S105 - so that scanners for leaked secrets can find ours
SECRET_BYTES = 32  # 43 characters of URL-safe base64
PREFIX_LENGTH = 12
LONGEST_LIFE = timedelta(days=366)


@transaction.atomic
def lab_create(name: str, *, slug: str = "", manager: User | None = None) -> Lab:
    """Create a lab and, where given, its first manager. Emits ``lab.created``.

    Raises:
        InvalidInputError: the name is empty.
        ConflictError: the slug is taken.
    """
    name, slug = name.strip(), slug or slugify(name)
    if not name or not slug:
        raise InvalidInputError("A lab needs a name with at least one letter or digit.")
    if Lab.objects.filter(slug=slug).exists():
        raise ConflictError(f"There is already a lab {slug!r}.", code="lab-exists")
    lab = Lab.objects.create(name=name, slug=slug)
    event_emit("lab.created", lab_id=lab.id, payload={"lab": str(lab.id), "name": name})
    if manager is not None:
        member_add(lab, user=manager, role=Role.MANAGER)
    return lab


def user_create(email: str, *, password: str | None = None, full_name: str = "") -> User:
    """Create an account. Without a password it can only be entered through a reset link.

    Raises:
        InvalidInputError: the address or the password is not acceptable.
        ConflictError: the address has an account.
    """
    email = email.strip().lower()
    try:
        validate_email(email)
        if password is not None:
            validate_password(password, User(email=email, full_name=full_name))
    except ValidationError as error:
        raise InvalidInputError(" ".join(error.messages)) from None
    taken = ConflictError(f"{email} already has an account.", code="email-taken")
    if User.objects.filter(email=email).exists():
        raise taken
    try:
        with transaction.atomic():
            return User.objects.create_user(email, password, full_name=full_name.strip())
    except IntegrityError:
        raise taken from None


@transaction.atomic
def member_add(lab: Lab, *, user: User, role: Role, by: User | None = None) -> Membership:
    """Make the person a member. Emits ``member.added``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: already a member.
    """
    _require_manager(lab, by)
    membership, created = Membership.objects.get_or_create(
        user=user, lab=lab, defaults={"role": role}
    )
    if not created:
        raise ConflictError(f"{user} is already a member of {lab}.", code="already-member")
    _note("member.added", membership, by)
    return membership


@transaction.atomic
def member_invite(
    lab: Lab, *, email: str, role: Role, by: User, full_name: str = "", password: str | None = None
) -> tuple[Membership, bool]:
    """Add whoever has this address, with a new account if there is none.

    Name and password are used for a new account only: nobody sets another person's password.

    Returns:
        The membership, and True if an account was made.
    """
    _require_manager(lab, by)
    user = User.objects.filter(email=email.strip().lower()).first()
    is_new = user is None
    if user is None:
        user = user_create(email, password=password, full_name=full_name)
    return member_add(lab, user=user, role=role, by=by), is_new


@transaction.atomic
def member_set_role(membership: Membership, *, role: Role, by: User | None = None) -> Membership:
    """Change what a member may do. Emits ``member.role_changed``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: the lab would be left without a manager.
    """
    _require_manager(membership.lab, by)
    if role != Role.MANAGER:
        _keep_a_manager(membership)
    membership.role = role
    membership.save(update_fields=["role", "updated_at"])
    _note("member.role_changed", membership, by)
    return membership


@transaction.atomic
def member_remove(membership: Membership, *, by: User | None = None) -> None:
    """End a membership; the account stays. Emits ``member.removed``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        ConflictError: it is the lab's last manager.
    """
    _require_manager(membership.lab, by)
    _keep_a_manager(membership)
    _note("member.removed", membership, by)
    membership.delete()


@transaction.atomic
def token_create(
    user: User, *, name: str, scope: TokenScope, expires_in: timedelta
) -> tuple[ApiToken, str]:
    """Make a token. Emits ``token.created``.

    Returns:
        The row, and the secret: it is kept nowhere and cannot be shown again.
    Raises:
        InvalidInputError: no name, an unknown scope, or a life not in (0, 366 days].
    """
    name = name.strip()
    if not name or len(name) > 80:
        raise InvalidInputError("A token needs a name of 1 to 80 characters.")
    if scope not in TokenScope.values:
        raise InvalidInputError(f"scope must be one of {', '.join(TokenScope.values)}.")
    if not timedelta(0) < expires_in <= LONGEST_LIFE:
        raise InvalidInputError("A token lives for more than nothing and at most 366 days.")
    secret = SECRET_BEGINS + secrets.token_urlsafe(SECRET_BYTES)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=secret[:PREFIX_LENGTH],
        sha256=hashlib.sha256(secret.encode()).hexdigest(),
        scope=scope,
        expires_at=timezone.now() + expires_in,
    )
    _note_token("token.created", token)
    return token, secret


@transaction.atomic
def token_revoke(token: ApiToken) -> ApiToken:
    """End a token for good; doing so twice changes nothing. Emits ``token.revoked``."""
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at", "updated_at"])
        _note_token("token.revoked", token)
    return token


def _require_manager(lab: Lab, by: User | None) -> None:
    if by is not None:
        require_role(by, lab.id, at_least=Role.MANAGER)


def _keep_a_manager(membership: Membership) -> None:
    managers = Membership.objects.select_for_update().filter(
        lab_id=membership.lab_id, role=Role.MANAGER
    )
    if set(managers.values_list("pk", flat=True)) == {membership.pk}:
        raise ConflictError(
            "This is the lab's last manager. Make somebody else a manager first.",
            code="last-manager",
        )


def _note(name: str, membership: Membership, by: User | None) -> None:
    event_emit(
        name,
        lab_id=membership.lab_id,
        payload={
            "membership": str(membership.id),
            "user": str(membership.user_id),
            "role": str(membership.role),
            "by": str(by.id) if by else None,
        },
    )


def _note_token(name: str, token: ApiToken) -> None:
    event_emit(
        name,
        lab_id=None,
        payload={"token": str(token.id), "user": str(token.user_id), "scope": str(token.scope)},
    )
