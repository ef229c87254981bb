"""Manifests and annotations of the IIIF Presentation API 3.0."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.formats.web import CONTEXTS
from portal.archive.selectors import canvas_get
from portal.exchange import selectors
from portal.exchange.api.crossing import CrossingApi, base_of, linked_json
from portal.exchange.formats import iiif
from portal.labs.models import TokenArea
from portal.labs.requests import user_of

MOST_PAGES = 10_000  # ten million ROIs: beyond, a number is a mistake
LINKED = {
    (200, "application/json"): OpenApiTypes.OBJECT,
    (200, "application/ld+json"): OpenApiTypes.OBJECT,
}
_ID = OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)


class PageQuerySerializer(serializers.Serializer[Any]):
    """Which page."""

    page = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MOST_PAGES)


class CanvasManifestApi(CrossingApi):
    """One canvas."""

    @extend_schema(
        operation_id="canvas_manifest",
        summary="The IIIF manifest of a canvas",
        parameters=[_ID],
        responses=LINKED,
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Presentation API 3.0: the image or the video, and where its annotations are."""
        canvas = canvas_get(user=user_of(request), canvas_id=id)
        manifest = iiif.canvas_manifest(canvas, base_of(request))
        return linked_json(request, manifest, context=iiif.PRESENTATION)


class CaseManifestApi(CrossingApi):
    """A case with all that it shows."""

    @extend_schema(
        operation_id="case_manifest",
        summary="The IIIF manifest of a case",
        parameters=[_ID],
        responses=LINKED,
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Its slides, stills, videos and mosaics, oldest first, up to 500."""
        case, canvases = selectors.case_canvases(user=user_of(request), case_id=id)
        manifest = iiif.case_manifest(case, canvases, base_of(request))
        return linked_json(request, manifest, context=iiif.PRESENTATION)


class CanvasAnnotationsApi(CrossingApi):
    """ROIs as annotations."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="canvas_annotations",
        summary="The ROIs of a canvas as W3C Web Annotations",
        parameters=[_ID, PageQuerySerializer],
        responses=LINKED,
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """An AnnotationPage of up to 1,000 ROIs, oldest first; `next` leads on."""
        asked = PageQuerySerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        number, user = asked.validated_data["page"], user_of(request)
        canvas = canvas_get(user=user, canvas_id=id)
        rois, is_last = selectors.roi_page(user=user, canvas=canvas, number=number)
        page = iiif.annotation_page(canvas, rois, base_of(request), number=number, is_last=is_last)
        return linked_json(request, page, context=CONTEXTS[0])
