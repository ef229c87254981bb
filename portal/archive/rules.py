"""Who may: members see, annotators fill the archive."""

from __future__ import annotations

import uuid

from portal.labs.models import Role, User
from portal.labs.rules import has_role, require_role


def may_edit(user: User, lab_id: uuid.UUID) -> bool:
    """Create and change cases, upload, retry, delete what holds no work of others."""
    return has_role(user, lab_id, at_least=Role.ANNOTATOR)


def require_edit(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless ``may_edit``."""
    require_role(user, lab_id, at_least=Role.ANNOTATOR)
