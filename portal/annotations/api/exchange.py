"""``/api/v1/canvases/{id}/rois.geojson``: QuPath's GeoJSON, out and in."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import StreamingHttpResponse
from django.utils.text import get_valid_filename
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.annotations import selectors
from portal.annotations.api.parsers import GeoJsonParser, GeometryJsonParser
from portal.annotations.services import ImportReport, roi_import, roi_import_undo
from portal.archive.selectors import canvas_get
from portal.core.http.acting import about
from portal.labs.models import TokenArea
from portal.labs.requests import user_of

MEDIA_TYPE = "application/geo+json"


class ImportItemSerializer(serializers.Serializer[Any]):
    """What became of one feature."""

    index = serializers.IntegerField()
    status = serializers.ChoiceField(["created", "updated", "restored", "unchanged", "refused"])
    roi = serializers.UUIDField(source="roi_id", allow_null=True)
    notes = serializers.ListField(child=serializers.CharField())
    reason = serializers.CharField()


class ImportReportSerializer(serializers.Serializer[Any]):
    """What became of the document: every feature is accounted for."""

    created = serializers.IntegerField()
    updated = serializers.IntegerField()
    restored = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    refused = serializers.IntegerField()
    repaired = serializers.IntegerField(help_text="Outlines that were repaired or clipped")
    labels_created = serializers.ListField(child=serializers.CharField())
    id = serializers.UUIDField(
        allow_null=True,
        help_text="POST /roi-imports/{id}/undo/ takes it back; null where nothing was changed",
    )
    items = ImportItemSerializer(many=True)


class ImportUndoneSerializer(serializers.Serializer[Any]):
    """What became of the import's ROIs."""

    removed = serializers.IntegerField(help_text="Deleted again")
    reverted = serializers.IntegerField(help_text="As they were before")
    kept = serializers.IntegerField(help_text="Left alone: somebody changed them since")


class ImportQuerySerializer(serializers.Serializer[Any]):
    """How to import."""

    create_labels = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Add unknown classes to the lab's labels (managers; their default)",
    )
    strict = serializers.BooleanField(
        required=False, default=False, help_text="Import all features or nothing"
    )


class JsonAlways(BaseContentNegotiation):
    """Whatever ``Accept`` says, errors and reports are JSON."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """By the content type of the body."""
        kind = (request.content_type or "").partition(";")[0].strip()
        return next((parser for parser in parsers if parser.media_type == kind), None)

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """JSON."""
        return renderers[0], renderers[0].media_type


class CanvasGeoJsonApi(APIView):
    """The ROIs of a canvas as QuPath reads and writes them."""

    area = TokenArea.ROIS
    parser_classes = (GeometryJsonParser, GeoJsonParser)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = JsonAlways

    @extend_schema(
        responses={(200, MEDIA_TYPE): OpenApiTypes.OBJECT},
        parameters=[OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)],
        summary="Export the ROIs of a canvas",
    )
    def get(self, request: Request, id: uuid.UUID) -> StreamingHttpResponse:
        """A FeatureCollection, streamed. Frames of a video are planes ``t``."""
        canvas = canvas_get(user=user_of(request), canvas_id=id)
        name = get_valid_filename(f"{canvas.name}-rois") or "rois"
        return StreamingHttpResponse(
            selectors.roi_export(canvas),
            content_type=MEDIA_TYPE,
            headers={"Content-Disposition": f'attachment; filename="{_ascii(name)}.geojson"'},
        )

    @extend_schema(
        request={"application/json": OpenApiTypes.OBJECT, MEDIA_TYPE: OpenApiTypes.OBJECT},
        responses={200: OpenApiResponse(ImportReportSerializer, "What became of each feature")},
        parameters=[
            ImportQuerySerializer,
            OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH),
        ],
        summary="Import ROIs into a canvas",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """A FeatureCollection, an array of features or one Feature.

        A feature whose id is an ROI of this canvas updates it. Importing twice changes nothing.
        """
        canvas = canvas_get(user=user_of(request), canvas_id=id)
        query = ImportQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        report = roi_import(
            canvas=canvas,
            user=user_of(request),
            document=request.data,
            create_labels=query.validated_data["create_labels"],
            strict=query.validated_data["strict"],
        )
        return Response(_represent(report))


class RoiImportUndoApi(APIView):
    """An import, taken back."""

    area = TokenArea.ROIS

    @extend_schema(
        request=None,
        responses=ImportUndoneSerializer,
        parameters=[OpenApiParameter("import_id", uuid.UUID, OpenApiParameter.PATH)],
        summary="Undo an import",
    )
    def post(self, request: Request, import_id: uuid.UUID) -> Response:
        """Delete what it made and revert what it changed; what was changed since stays."""
        found = selectors.roi_import_get(user_of(request), import_id)
        about(request, found.canvas_id)
        undone = roi_import_undo(roi_import=found, user=user_of(request))
        return Response(ImportUndoneSerializer(undone).data)


def _represent(report: ImportReport) -> dict[str, Any]:
    counts = {
        status: report.count(status)
        for status in ("created", "updated", "restored", "unchanged", "refused")
    }
    return {
        **counts,
        "repaired": report.repaired,
        "labels_created": list(report.labels_created),
        "id": report.import_id and str(report.import_id),
        "items": ImportItemSerializer(report.items, many=True).data,
    }


def _ascii(name: str) -> str:
    return name.encode("ascii", "ignore").decode() or "rois"
