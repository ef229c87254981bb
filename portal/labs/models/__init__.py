"""Models of labs: people, labs (the tenants), memberships, invitations and API tokens."""

# Django finds models in this module. Only models and their choices are listed here; import all
# else from the modules.
from portal.labs.models.attempts import Attempt, KnownDevice
from portal.labs.models.invitations import Delivery, Ending, Invitation
from portal.labs.models.links import OneTimeLink, Purpose
from portal.labs.models.people import Lab, LabOwned, Membership, Role, User
from portal.labs.models.sessions import BrowserSession
from portal.labs.models.tokens import ApiToken, TokenArea, TokenScope

__all__ = [
    "ApiToken",
    "Attempt",
    "BrowserSession",
    "Delivery",
    "Ending",
    "Invitation",
    "KnownDevice",
    "Lab",
    "LabOwned",
    "Membership",
    "OneTimeLink",
    "Purpose",
    "Role",
    "TokenArea",
    "TokenScope",
    "User",
]
