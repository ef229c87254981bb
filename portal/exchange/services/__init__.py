"""Writes of whole cases: out of a lab, and into one."""

from portal.exchange.services.exporting import (
    case_export_request,
    case_export_to,
    case_export_write,
)
from portal.exchange.services.importing import CaseImported, case_import

__all__ = [
    "CaseImported",
    "case_export_request",
    "case_export_to",
    "case_export_write",
    "case_import",
]
