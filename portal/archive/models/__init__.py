"""Rows of the archive: cases, what they hold, and who else may read them."""

from portal.archive.models.bin import PRESENT, BinEntry, BinKind, Binnable
from portal.archive.models.intake import Evidence, IntakeRules, Seen
from portal.archive.models.records import (
    AgeBand,
    Asset,
    Canvas,
    CanvasKind,
    Case,
    CaseItem,
    ItemState,
    LabQuota,
    Sex,
    Slide,
    StorageIdentity,
    Upload,
    UploadState,
    Video,
    canvases_in_bin,
)
from portal.archive.models.shares import CaseShare, CaseShareQuerySet, cases_shared_with, today

__all__ = [
    "PRESENT",
    "AgeBand",
    "Asset",
    "BinEntry",
    "BinKind",
    "Binnable",
    "Canvas",
    "CanvasKind",
    "Case",
    "CaseItem",
    "CaseShare",
    "CaseShareQuerySet",
    "Evidence",
    "IntakeRules",
    "ItemState",
    "LabQuota",
    "Seen",
    "Sex",
    "Slide",
    "StorageIdentity",
    "Upload",
    "UploadState",
    "Video",
    "canvases_in_bin",
    "cases_shared_with",
    "today",
]
