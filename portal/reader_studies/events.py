"""Names of the events of assigned work."""

from __future__ import annotations

from enum import StrEnum


class AssignmentEvent(StrEnum):
    """Emitted by ``portal.reader_studies``."""

    MADE = "assignment.made"
    SUBMITTED = "assignment.submitted"
    REOPENED = "assignment.reopened"
    CHANGED = "assignment.changed"
    REMOVED = "assignment.removed"
