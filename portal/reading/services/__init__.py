"""Writes of reading."""

from portal.reading.services.adjudication import decision_undo, findings_decide
from portal.reading.services.assignments import (
    MOST_AT_ONCE,
    WantedReadings,
    assignment_remove,
    assignment_reopen,
    assignment_submit,
    assignment_update,
    work_assign,
)
from portal.reading.services.studies import readings_assign, study_create, study_unblind

__all__ = [
    "MOST_AT_ONCE",
    "WantedReadings",
    "assignment_remove",
    "assignment_reopen",
    "assignment_submit",
    "assignment_update",
    "decision_undo",
    "findings_decide",
    "readings_assign",
    "study_create",
    "study_unblind",
    "work_assign",
]
