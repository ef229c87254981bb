"""Permissions: members view mosaics, annotators build them."""

from __future__ import annotations

import uuid

from portal.labs.models import Role, User
from portal.labs.rules import has_role, require_role


def may_build(user: User, lab_id: uuid.UUID) -> bool:
    """True if the person may have a mosaic built."""
    return has_role(user, lab_id, at_least=Role.ANNOTATOR)


def require_build(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless ``may_build``."""
    require_role(user, lab_id, at_least=Role.ANNOTATOR)
