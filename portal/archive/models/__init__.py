"""Models of the archive: cases, slides, videos, canvases, uploads, shares, trash, vocabulary."""

# Django finds models in this module. Only models and their choices are listed here; import all
# else from the modules.
from portal.archive.models.intake import (
    Evidence,
    IntakeRules,
    PixelRule,
    Redaction,
    RedactionTemplate,
)
from portal.archive.models.records import (
    AgeBand,
    Asset,
    Canvas,
    CanvasKind,
    Case,
    CaseItem,
    ItemState,
    LabQuota,
    Modality,
    Sex,
    Slide,
    StorageIdentity,
    Upload,
    UploadState,
    Video,
)
from portal.archive.models.shares import CaseShare
from portal.archive.models.trash import Trashable, TrashEntry, TrashKind
from portal.archive.models.vocabulary import VocabularyField, VocabularyTerm

__all__ = [
    "AgeBand",
    "Asset",
    "Canvas",
    "CanvasKind",
    "Case",
    "CaseItem",
    "CaseShare",
    "Evidence",
    "IntakeRules",
    "ItemState",
    "LabQuota",
    "Modality",
    "PixelRule",
    "Redaction",
    "RedactionTemplate",
    "Sex",
    "Slide",
    "StorageIdentity",
    "TrashEntry",
    "TrashKind",
    "Trashable",
    "Upload",
    "UploadState",
    "Video",
    "VocabularyField",
    "VocabularyTerm",
]
