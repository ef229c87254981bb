"""What stands between a file that arrived and what people see of it."""

from portal.archive.services.gate.cleaning import (
    CleanFile,
    item_cleaned,
    item_placing,
    lab_key,
)
from portal.archive.services.gate.quarantine import (
    NOT_CLEAN,
    RELEASABLE,
    item_is_released,
    item_quarantine,
    quarantine_delete,
    quarantine_release,
    quarantine_retry,
)
from portal.archive.services.gate.rules import IntakeWanted, intake_rules_set

__all__ = [
    "NOT_CLEAN",
    "RELEASABLE",
    "CleanFile",
    "IntakeWanted",
    "intake_rules_set",
    "item_cleaned",
    "item_is_released",
    "item_placing",
    "item_quarantine",
    "lab_key",
    "quarantine_delete",
    "quarantine_release",
    "quarantine_retry",
]
