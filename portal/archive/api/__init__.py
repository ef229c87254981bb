"""REST."""

from __future__ import annotations

from typing import Any

from django.urls import path, register_converter

from portal.archive.api.bulk import CasesDetailsApi, CasesShareApi, CasesTagApi
from portal.archive.api.canvases import CanvasViewSet, SignedConverter
from portal.archive.api.cases import CaseViewSet
from portal.archive.api.intake import IntakeRulesApi, OriginalViewSet, QuarantineViewSet
from portal.archive.api.items import SlideViewSet, VideoViewSet
from portal.archive.api.redaction_templates import RedactionTemplateViewSet
from portal.archive.api.sharing import CaseSharesApi, ShareViewSet
from portal.archive.api.trash import TrashViewSet
from portal.archive.api.uploads import UploadViewSet
from portal.archive.api.vocabulary import VocabularyViewSet

register_converter(SignedConverter, "signed")

router_entries: list[tuple[str, Any, str]] = [
    ("cases", CaseViewSet, "case"),
    ("slides", SlideViewSet, "slide"),
    ("videos", VideoViewSet, "video"),
    ("canvases", CanvasViewSet, "canvas"),
    ("shares", ShareViewSet, "share"),
    ("quarantine", QuarantineViewSet, "quarantine"),
    ("originals", OriginalViewSet, "original"),
    ("redaction-templates", RedactionTemplateViewSet, "redaction-template"),
    ("trash", TrashViewSet, "trash"),
    ("vocabulary", VocabularyViewSet, "vocabulary"),
]
urlpatterns = [
    path(
        "uploads/",
        UploadViewSet.as_view({"get": "list", "post": "create", "options": "discover"}),
        name="upload-list",
    ),
    path(
        "uploads/<uuid:pk>/",
        UploadViewSet.as_view(
            {
                "get": "retrieve",
                "head": "offset",
                "patch": "append",
                "delete": "destroy",
                "options": "discover",
            }
        ),
        name="upload-detail",
    ),
    path("intake-rules/<uuid:id>/", IntakeRulesApi.as_view(), name="intake-rules"),
    path("cases/bulk/tags/", CasesTagApi.as_view(), name="case-bulk-tags"),
    path("cases/bulk/details/", CasesDetailsApi.as_view(), name="case-bulk-details"),
    path("cases/bulk/shares/", CasesShareApi.as_view(), name="case-bulk-shares"),
    path("cases/<uuid:case_id>/shares/", CaseSharesApi.as_view(), name="case-shares"),
    path(
        "canvases/<uuid:pk>/tiles/<int:z>/<int:x>/<int:y>.jpg",
        CanvasViewSet.as_view({"get": "tile"}),
        name="canvas-tile",
    ),
    path(
        "canvases/<uuid:pk>/thumbnail.jpg",
        CanvasViewSet.as_view({"get": "thumbnail"}),
        name="canvas-thumbnail",
    ),
    path(
        "canvases/<uuid:pk>/frames/<signed:pts>.jpg",
        CanvasViewSet.as_view({"get": "frame"}),
        name="canvas-frame",
    ),
    path(
        "canvases/<uuid:pk>/filmstrip.jpg",
        CanvasViewSet.as_view({"get": "filmstrip"}),
        name="canvas-filmstrip",
    ),
]
