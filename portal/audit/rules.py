"""Permissions: managers read the log of their lab; only the portal writes it."""

from __future__ import annotations

import uuid

from portal.labs.models import Role, User
from portal.labs.rules import require_role


def require_read(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless the user manages the lab."""
    require_role(user, lab_id, at_least=Role.MANAGER)
