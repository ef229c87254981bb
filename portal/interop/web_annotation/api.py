"""``/api/v1/canvases/{id}/annotations/``: ROIs as W3C Web Annotations."""

from __future__ import annotations

import uuid
from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.formats.web import CONTEXTS
from portal.archive.selectors.canvases import canvas_get
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited
from portal.interop.http import LINKED, StandardApi, base_of, linked_json
from portal.interop.web_annotation.formats import annotation_page
from portal.interop.web_annotation.selectors import roi_page
from portal.labs.models import TokenArea
from portal.labs.requests import user_of

MAX_PAGES = 10_000  # ten million ROIs; a larger number is an error


class PageQuerySerializer(serializers.Serializer[Any]):
    """Query parameters of a page."""

    page = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MAX_PAGES)


@audited(GET=AuditRule("roi.exported", "canvas", "id", every_s=MINUTE_S))
class CanvasAnnotationsApi(StandardApi):
    """ROIs as annotations."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="canvas_annotations",
        summary="The ROIs of a canvas as W3C Web Annotations",
        parameters=[OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH), PageQuerySerializer],
        responses=LINKED,
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """An AnnotationPage of up to 1,000 ROIs, oldest first; `next` is the address of the
        following page.
        """
        params = PageQuerySerializer(data=request.query_params)
        params.is_valid(raise_exception=True)
        number, user = params.validated_data["page"], user_of(request)
        canvas = canvas_get(user=user, canvas_id=id)
        rois, is_last = roi_page(user=user, canvas=canvas, number=number)
        page = annotation_page(canvas, rois, base_of(request), number=number, is_last=is_last)
        return linked_json(request, page, context=CONTEXTS[0])


urlpatterns = [
    path(
        "canvases/<uuid:id>/annotations/",
        CanvasAnnotationsApi.as_view(),
        name="canvas-annotations",
    ),
]
