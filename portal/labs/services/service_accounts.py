"""Writes: service accounts of a lab.

A service account has a role in one lab, and no password, mailbox or sign-in. The lab's managers
make and revoke its tokens. It outlives the person who set it up.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction

from portal.core.errors import InvalidInputError
from portal.labs.models import ApiToken, Lab, Membership, Role, TokenScope, User
from portal.labs.rules import require_manager
from portal.labs.services.accounts import user_deactivate
from portal.labs.services.members import member_add, member_remove
from portal.labs.services.tokens import token_create

NOWHERE = "service.invalid"  # reserved: no mailbox will ever be there


@transaction.atomic
def service_account_create(lab: Lab, *, name: str, role: Role, by: User) -> Membership:
    """Create a service account. Emits ``member.added``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        InvalidInputError: no name, or the role of a manager.
    """
    require_manager(by, lab)
    name = name.strip()
    if not name or len(name) > 120:
        raise InvalidInputError("A service account needs a name of 1 to 120 characters.")
    if role == Role.MANAGER:
        raise InvalidInputError("A service account cannot be a manager.")
    service_account = User.objects.create_user(
        f"{uuid.uuid4().hex}@{NOWHERE}", None, full_name=name, is_service=True
    )
    return member_add(lab, user=service_account, role=role, by=by)


@transaction.atomic
def service_account_token_create(
    service_account: Membership,
    *,
    scope: TokenScope,
    expires_in: timedelta,
    by: User,
    areas: Mapping[str, str] | None = None,
) -> tuple[ApiToken, str]:
    """Create a token of a service account; see ``token_create``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
    """
    require_manager(by, service_account.lab)
    name = service_account.user.full_name[:80]
    return token_create(
        service_account.user,
        name=name,
        scope=scope,
        expires_in=expires_in,
        lab=service_account.lab,
        areas=areas,
    )


@transaction.atomic
def service_account_remove(service_account: Membership, *, by: User) -> None:
    """Close a service account and revoke its tokens; its work stays. Emits ``member.removed``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
    """
    user = service_account.user
    member_remove(service_account, by=by)
    user_deactivate(user)
