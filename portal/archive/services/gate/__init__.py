"""What stands between a file that arrived and what people see of it."""

from portal.archive.services.gate.cleaning import (
    CleanFile,
    item_cleaned,
    item_placing,
    lab_key,
)
from portal.archive.services.gate.places import told_of
from portal.archive.services.gate.quarantine import (
    NOT_CLEAN,
    NOT_LOOKED,
    RELEASABLE,
    SEEN,
    evidence_drop,
    evidence_keep,
    item_is_imported,
    item_is_released,
    item_quarantine,
    quarantine_delete,
    quarantine_release,
    quarantine_retry,
)
from portal.archive.services.gate.rules import IntakeWanted, intake_rules_set

__all__ = [
    "NOT_CLEAN",
    "NOT_LOOKED",
    "RELEASABLE",
    "SEEN",
    "CleanFile",
    "IntakeWanted",
    "evidence_drop",
    "evidence_keep",
    "intake_rules_set",
    "item_cleaned",
    "item_is_imported",
    "item_is_released",
    "item_placing",
    "item_quarantine",
    "lab_key",
    "quarantine_delete",
    "quarantine_release",
    "quarantine_retry",
    "told_of",
]
