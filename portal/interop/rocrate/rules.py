"""Permissions: managers export whole cases from their lab and import them."""

from __future__ import annotations

import uuid

from portal.labs.models import Role, User
from portal.labs.rules import has_role, require_role


def may_export(user: User, lab_id: uuid.UUID) -> bool:
    """Return whether the person may take a whole case out of the lab."""
    return has_role(user, lab_id, at_least=Role.MANAGER)


def require_export(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless ``may_export``."""
    require_role(user, lab_id, at_least=Role.MANAGER)


def require_import(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless they may bring a whole case into a lab."""
    require_role(user, lab_id, at_least=Role.MANAGER)
