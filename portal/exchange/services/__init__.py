"""Writes of whole cases: out of a lab, and into one."""

from portal.exchange.services.crates import crates_concerned
from portal.exchange.services.exporting import (
    case_export_request,
    case_export_to,
    case_export_write,
)
from portal.exchange.services.import_jobs import (
    case_import_ended,
    case_import_request,
    case_import_work,
)
from portal.exchange.services.importing import CaseImported, case_import

__all__ = [
    "CaseImported",
    "case_export_request",
    "case_export_to",
    "case_export_write",
    "case_import",
    "case_import_ended",
    "case_import_request",
    "case_import_work",
    "crates_concerned",
]
