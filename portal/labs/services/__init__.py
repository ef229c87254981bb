"""Writes of labs."""

from portal.labs.services.accounts import user_create
from portal.labs.services.labs import lab_create
from portal.labs.services.members import member_add, member_invite, member_remove, member_set_role
from portal.labs.services.tokens import LONGEST_LIFE, token_create, token_revoke

__all__ = [
    "LONGEST_LIFE",
    "lab_create",
    "member_add",
    "member_invite",
    "member_remove",
    "member_set_role",
    "token_create",
    "token_revoke",
    "user_create",
]
