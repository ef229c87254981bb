"""Permissions: managers erase."""

from __future__ import annotations

import uuid

from portal.labs.models import Role, User
from portal.labs.rules import require_role


def require_erase(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless the person may erase data of the lab."""
    require_role(user, lab_id, at_least=Role.MANAGER)
