"""Who may: managers assign and lift a blinding, readers hand in, a third person adjudicates."""

from __future__ import annotations

import uuid

from portal.core.errors import ForbiddenError
from portal.labs.models import Role, User
from portal.labs.rules import has_role, require_role
from portal.reading.models import Study


def require_assign(user: User, lab_id: uuid.UUID) -> None:
    """Raise ``ForbiddenError`` unless the person hands out the lab's work."""
    require_role(user, lab_id, at_least=Role.MANAGER)


def may_assign(user: User, lab_id: uuid.UUID) -> bool:
    """True if the person hands out the lab's work."""
    return has_role(user, lab_id, at_least=Role.MANAGER)


def is_reader(user: User, study: Study) -> bool:
    """Whether the person reads in the study."""
    return bool(study.readings.filter(person=user).exists())


def may_adjudicate(user: User, study: Study) -> bool:
    """True for a reviewer who does not read in the study: a third person."""
    return has_role(user, study.lab_id, at_least=Role.REVIEWER) and not is_reader(user, study)


def require_adjudicate(user: User, study: Study) -> None:
    """Raise ``ForbiddenError`` unless the person is a third one, and a reviewer."""
    require_role(user, study.lab_id, at_least=Role.REVIEWER)
    if is_reader(user, study):
        raise ForbiddenError("A reader of a study cannot decide between its readers.")
