"""Who may: annotators see the bin and restore, managers delete for good and erase."""

from __future__ import annotations

import uuid

from portal.labs.models import Role, User
from portal.labs.rules import has_role, require_role


def require_bin(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless the person may see what was deleted, and restore it."""
    require_role(user, lab_id, at_least=Role.ANNOTATOR)


def may_purge(user: User, lab_id: uuid.UUID) -> bool:
    """Whether the person may delete for good."""
    return has_role(user, lab_id, at_least=Role.MANAGER)


def require_purge(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless ``may_purge``."""
    require_role(user, lab_id, at_least=Role.MANAGER)
