"""Writes: programs of a lab, also called service accounts.

A program is an account without password, mailbox and sign-in, and with a role in one lab. The lab's
managers make and revoke its tokens; it outlives the person who set it up.
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
def program_create(lab: Lab, *, name: str, role: Role, by: User) -> Membership:
    """Make a program. Emits ``member.added``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
        InvalidInputError: no name, or the role of a manager.
    """
    require_manager(by, lab)
    name = name.strip()
    if not name or len(name) > 120:
        raise InvalidInputError("A program needs a name of 1 to 120 characters.")
    if role == Role.MANAGER:
        raise InvalidInputError("A program cannot be a manager.")
    program = User.objects.create_user(
        f"{uuid.uuid4().hex}@{NOWHERE}", None, full_name=name, is_service=True
    )
    return member_add(lab, user=program, role=role, by=by)


@transaction.atomic
def program_token_create(
    program: Membership,
    *,
    scope: TokenScope,
    expires_in: timedelta,
    by: User,
    areas: Mapping[str, str] | None = None,
) -> tuple[ApiToken, str]:
    """Make a token of a program; see ``token_create``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
    """
    require_manager(by, program.lab)
    name = program.user.full_name[:80]
    return token_create(
        program.user, name=name, scope=scope, expires_in=expires_in, lab=program.lab, areas=areas
    )


@transaction.atomic
def program_remove(program: Membership, *, by: User) -> None:
    """End a program and its tokens; its work stays. Emits ``member.removed``.

    Raises:
        ForbiddenError: ``by`` is not a manager of the lab.
    """
    user = program.user
    member_remove(program, by=by)
    user_deactivate(user)
