"""Permissions: managers assign and unblind, readers submit, a third person adjudicates."""

from __future__ import annotations

import uuid

from portal.core.errors import ForbiddenError
from portal.labs.models import Role, User
from portal.labs.rules import has_role, require_role
from portal.reader_studies.models import Study


def require_assign(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless the user may assign work of the lab."""
    require_role(user, lab_id, at_least=Role.MANAGER)


def may_assign(user: User, lab_id: uuid.UUID) -> bool:
    """Return whether the user may assign work of the lab."""
    return has_role(user, lab_id, at_least=Role.MANAGER)


def is_reader(user: User, study: Study) -> bool:
    """Return whether the user is a reader of the study."""
    return bool(study.readings.filter(person=user).exists())


def may_adjudicate(user: User, study: Study) -> bool:
    """Return whether the user is a reviewer who is not a reader of the study."""
    return has_role(user, study.lab_id, at_least=Role.REVIEWER) and not is_reader(user, study)


def require_adjudicate(user: User, study: Study) -> None:
    """Raise ``ForbiddenError`` unless the user is a reviewer who is not a reader of the study."""
    require_role(user, study.lab_id, at_least=Role.REVIEWER)
    if is_reader(user, study):
        raise ForbiddenError("A reader of a study cannot decide between its readers.")
