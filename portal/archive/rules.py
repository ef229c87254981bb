"""Permissions: members view, annotators add to the archive, managers share and delete for good.

Also the retention of unfinished uploads.
"""

from __future__ import annotations

import uuid
from datetime import timedelta

from portal.labs.models import Role, User
from portal.labs.rules import has_role, require_role

RETENTION = timedelta(hours=48)
"""Unfinished uploads and temporary files older than this are deleted by the sweep."""


def may_edit(user: User, lab_id: uuid.UUID) -> bool:
    """Create and change cases, upload, retry, put into the trash and restore."""
    return has_role(user, lab_id, at_least=Role.ANNOTATOR)


def may_purge(user: User, lab_id: uuid.UUID) -> bool:
    """Delete trash entries for good."""
    return has_role(user, lab_id, at_least=Role.MANAGER)


def require_purge(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless ``may_purge``."""
    require_role(user, lab_id, at_least=Role.MANAGER)


def may_intake(user: User, lab_id: uuid.UUID) -> bool:
    """Set the intake rules, and see and decide files in quarantine."""
    return has_role(user, lab_id, at_least=Role.MANAGER)


def require_intake(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless ``may_intake``."""
    require_role(user, lab_id, at_least=Role.MANAGER)


def may_manage_vocabulary(user: User, lab_id: uuid.UUID) -> bool:
    """Import and delete the lab's terms for organ and diagnosis."""
    return has_role(user, lab_id, at_least=Role.MANAGER)


def require_manage_vocabulary(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless ``may_manage_vocabulary``."""
    require_role(user, lab_id, at_least=Role.MANAGER)


def require_edit(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless ``may_edit``."""
    require_role(user, lab_id, at_least=Role.ANNOTATOR)


def require_crate(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless they may send a lab a crate, and have it imported."""
    require_role(user, lab_id, at_least=Role.MANAGER)


def may_share(user: User, lab_id: uuid.UUID) -> bool:
    """Offer the lab's cases to another lab, answer offers made to it, and end either."""
    return has_role(user, lab_id, at_least=Role.MANAGER)


def require_share(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless ``may_share``."""
    require_role(user, lab_id, at_least=Role.MANAGER)
