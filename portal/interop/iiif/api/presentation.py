"""Manifests of the IIIF Presentation API 3.0."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.selectors.canvases import canvas_get
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited
from portal.interop.http import LINKED, StandardApi, base_of, linked_json
from portal.interop.iiif.formats import documents
from portal.interop.selectors import case_canvases
from portal.labs.requests import user_of

_ID = OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)


@audited(GET=AuditRule("canvas.opened", "canvas", "id", every_s=MINUTE_S))
class CanvasManifestApi(StandardApi):
    """A canvas."""

    @extend_schema(
        operation_id="canvas_manifest",
        summary="The IIIF manifest of a canvas",
        parameters=[_ID],
        responses=LINKED,
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """IIIF Presentation API 3.0: the image or video, with the address of its annotations."""
        canvas = canvas_get(user=user_of(request), canvas_id=id)
        manifest = documents.canvas_manifest(canvas, base_of(request))
        return linked_json(request, manifest, context=documents.PRESENTATION)


@audited(GET=AuditRule("case.viewed", "case", "id"))
class CaseManifestApi(StandardApi):
    """A case with all that it shows."""

    @extend_schema(
        operation_id="case_manifest",
        summary="The IIIF manifest of a case",
        parameters=[_ID],
        responses=LINKED,
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Slides, stills, videos and mosaics of a case, oldest first, up to 500."""
        case, canvases = case_canvases(user=user_of(request), case_id=id)
        manifest = documents.case_manifest(case, canvases, base_of(request))
        return linked_json(request, manifest, context=documents.PRESENTATION)
