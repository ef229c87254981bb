"""Rows of retrieval: vectors and what makes them, searches, and reports of their answers."""

from portal.retrieval.models.learning import Learning, LearningMethod
from portal.retrieval.models.maps import LabelConfirmation, RegionMap
from portal.retrieval.models.reports import RegionRole, Report, ReportRegion
from portal.retrieval.models.searches import (
    EMBEDDED_SOURCES,
    Explanation,
    Judgement,
    Query,
    QuerySource,
    Verdict,
)
from portal.retrieval.models.vectors import (
    CANVASES_OF,
    CURRENT,
    CanvasStain,
    Embedding,
    Encoder,
    EncoderKind,
    IndexSnapshot,
    TissueSample,
    Unembeddable,
)

__all__ = [
    "CANVASES_OF",
    "CURRENT",
    "EMBEDDED_SOURCES",
    "CanvasStain",
    "Embedding",
    "Encoder",
    "EncoderKind",
    "Explanation",
    "IndexSnapshot",
    "Judgement",
    "LabelConfirmation",
    "Learning",
    "LearningMethod",
    "Query",
    "QuerySource",
    "RegionMap",
    "RegionRole",
    "Report",
    "ReportRegion",
    "TissueSample",
    "Unembeddable",
    "Verdict",
]
