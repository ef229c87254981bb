"""Rows of labs: people, labs (the tenants), memberships, invitations and API tokens."""

from portal.labs.models.attempts import Attempt, KnownDevice
from portal.labs.models.invitations import Delivery, Ending, Invitation
from portal.labs.models.links import OneTimeLink, Purpose
from portal.labs.models.people import (
    Lab,
    LabOwned,
    LabOwnedManager,
    LabOwnedQuerySet,
    LabQuerySet,
    Membership,
    MembershipQuerySet,
    Role,
    ShownManager,
    User,
    UserManager,
    hidden_q,
    hide_register,
)
from portal.labs.models.sessions import BrowserSession
from portal.labs.models.tokens import ApiToken, ApiTokenQuerySet, TokenArea, TokenScope

__all__ = [
    "ApiToken",
    "ApiTokenQuerySet",
    "Attempt",
    "BrowserSession",
    "Delivery",
    "Ending",
    "Invitation",
    "KnownDevice",
    "Lab",
    "LabOwned",
    "LabOwnedManager",
    "LabOwnedQuerySet",
    "LabQuerySet",
    "Membership",
    "MembershipQuerySet",
    "OneTimeLink",
    "Purpose",
    "Role",
    "ShownManager",
    "TokenArea",
    "TokenScope",
    "User",
    "UserManager",
    "hidden_q",
    "hide_register",
]
