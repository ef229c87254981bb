"""Erasure: rows, revisions, vectors, indexes, files and texts of a patient, gone for good."""

from portal.keeping.services.erasing.acts import (
    cases_of,
    erasure_begin,
    erasure_run,
    erasures_pass_on,
    erasures_repeat,
)

__all__ = [
    "cases_of",
    "erasure_begin",
    "erasure_run",
    "erasures_pass_on",
    "erasures_repeat",
]
