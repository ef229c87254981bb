"""Erasure: rows, revisions, vectors, indexes, files and texts of a patient, gone for good."""

from portal.keeping.services.erasing.acts import (
    cases_of,
    erasure_begin,
    erasure_run,
    erasures_pass_on,
    erasures_repeat,
    require_not_erasing,
)
from portal.keeping.services.erasing.requests import (
    ERASE_KIND,
    Preview,
    erasure_preview,
    erasure_request,
)

__all__ = [
    "ERASE_KIND",
    "Preview",
    "cases_of",
    "erasure_begin",
    "erasure_preview",
    "erasure_request",
    "erasure_run",
    "erasures_pass_on",
    "erasures_repeat",
    "require_not_erasing",
]
