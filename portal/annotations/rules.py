"""Permissions: viewers read, annotators draw, reviewers review, managers edit the labels."""

from __future__ import annotations

import uuid

from portal.labs.models import Role, User
from portal.labs.rules import has_role, require_role


def require_annotate(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless the person may draw, change, delete and restore ROIs."""
    require_role(user, lab_id, at_least=Role.ANNOTATOR)


def require_review(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless the person may accept and reject ROIs."""
    require_role(user, lab_id, at_least=Role.REVIEWER)


def require_manage_labels(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless the person keeps the lab's labels."""
    require_role(user, lab_id, at_least=Role.MANAGER)


def may_manage_labels(user: User, lab_id: uuid.UUID) -> bool:
    """True if the person keeps the lab's labels."""
    return has_role(user, lab_id, at_least=Role.MANAGER)
