"""``/api/v1/canvases/{id}/rois.geojson``: QuPath's GeoJSON, out and in."""

from __future__ import annotations

import csv
import uuid
from tempfile import SpooledTemporaryFile
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
from portal.annotations.api.parsers import DOCUMENT_BYTES, DocumentParser, GeoJsonParser
from portal.annotations.services import (
    ImportChoices,
    ImportItem,
    ImportReport,
    roi_import,
    roi_import_preview,
    roi_import_undo,
)
from portal.archive.models import Canvas
from portal.archive.selectors import canvas_get
from portal.core.http.acting import about
from portal.labs.models import TokenArea, User
from portal.labs.requests import user_of

MEDIA_TYPE = "application/geo+json"


class ImportItemSerializer(serializers.Serializer[Any]):
    """What became of one feature."""

    index = serializers.IntegerField()
    status = serializers.ChoiceField(["created", "updated", "restored", "unchanged", "refused"])
    roi = serializers.UUIDField(source="roi_id", allow_null=True)
    notes = serializers.ListField(child=serializers.CharField())
    reason = serializers.CharField()


class ImportGroupSerializer(serializers.Serializer[Any]):
    """Features of which the same was said, but for numbers."""

    status = serializers.ChoiceField(["refused", "repaired"])
    reason = serializers.CharField(help_text="As it was said of the first of them")
    count = serializers.IntegerField()
    first = serializers.ListField(
        child=serializers.IntegerField(), help_text="Places of the first few, from 0"
    )


class ImportClassSerializer(serializers.Serializer[Any]):
    """A class of the document, and what its ROIs get."""

    name = serializers.CharField()
    color = serializers.CharField(allow_null=True)
    count = serializers.IntegerField()
    fate = serializers.ChoiceField(["known", "mapped", "created", "none", "refused"])
    label = serializers.UUIDField(  # type: ignore[assignment]
        source="label_id", allow_null=True, help_text="null where there is none, or none yet"
    )
    label_name = serializers.CharField()
    problem = serializers.CharField(help_text="Why it is refused")


class ImportReportSerializer(serializers.Serializer[Any]):
    """What became of the document, or would: every feature is counted."""

    total = serializers.IntegerField()
    created = serializers.IntegerField()
    updated = serializers.IntegerField()
    restored = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    refused = serializers.IntegerField()
    repaired = serializers.IntegerField(help_text="Outlines that were repaired or clipped")
    labels_created = serializers.ListField(child=serializers.CharField())
    classes = ImportClassSerializer(many=True)
    groups = ImportGroupSerializer(many=True, help_text="All reasons and repairs, counted")
    id = serializers.UUIDField(
        source="import_id",
        allow_null=True,
        help_text="POST /roi-imports/{id}/undo/ takes it back; null where nothing was changed",
    )
    is_preview = serializers.BooleanField(help_text="Nothing was written")
    items = ImportItemSerializer(
        many=True,
        help_text="Every feature; of more than 2,000 those refused or repaired, 2,000 at most",
    )


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
    labels = serializers.JSONField(
        required=False,
        default=dict,
        help_text='What classes become: {"Class": "<id of a label>"}, or null for no label',
    )
    strict = serializers.BooleanField(
        required=False, default=False, help_text="Import all features or nothing"
    )
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="Answer what an import would do; write nothing"
    )
    report = serializers.ChoiceField(
        ["json", "csv"],
        required=False,
        default="json",
        help_text="`csv` (with `dry_run`): one line a feature, however many there are",
    )

    def validate_labels(self, value: object) -> dict[str, uuid.UUID | None]:
        """By lower-case name."""
        if not isinstance(value, dict):
            raise serializers.ValidationError("An object is expected.")
        try:
            return {
                str(name).lower(): None if label is None else uuid.UUID(str(label))
                for name, label in value.items()
            }
        except ValueError:
            raise serializers.ValidationError("Ids of labels, or null, are expected.") from None

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A table is written of a preview only."""
        if attrs["report"] == "csv" and not attrs["dry_run"]:
            raise serializers.ValidationError({"report": "csv needs dry_run=1."})
        return attrs


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
    parser_classes = (DocumentParser, GeoJsonParser)
    body_limit_bytes = DOCUMENT_BYTES
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
    def post(self, request: Request, id: uuid.UUID) -> Response | StreamingHttpResponse:
        """A FeatureCollection, an array of features or one Feature.

        A feature whose id is an ROI of this canvas updates it. Importing twice changes nothing.
        The body is read as a stream, up to 2 GiB.
        """
        canvas = canvas_get(user=user_of(request), canvas_id=id)
        query = ImportQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        choices = ImportChoices(asked["create_labels"], asked["labels"], asked["strict"])
        user = user_of(request)
        if asked["report"] == "csv":
            return _table(canvas, user, request.data, choices)
        do = roi_import_preview if asked["dry_run"] else roi_import
        report = do(canvas=canvas, user=user, document=request.data, choices=choices)
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
        "total": report.total,
        **counts,
        "repaired": report.repaired,
        "labels_created": list(report.labels_created),
        "classes": ImportClassSerializer(report.classes, many=True).data,
        "groups": ImportGroupSerializer(report.groups, many=True).data,
        "id": report.import_id and str(report.import_id),
        "is_preview": report.is_preview,
        "items": ImportItemSerializer(report.items, many=True).data,
    }


def _table(
    canvas: Canvas, user: User, document: object, choices: ImportChoices
) -> StreamingHttpResponse:
    """What would become of each feature, one line each, by way of a file."""
    file = SpooledTemporaryFile(2**22, "w+", newline="", encoding="utf-8")  # noqa: SIM115 - outlives this call
    writer = csv.writer(file)
    writer.writerow(["feature", "status", "notes", "reason"])

    def told(item: ImportItem) -> None:
        words = ("; ".join(item.notes), item.reason)
        writer.writerow([item.index, item.status, *map(_cell, words)])

    roi_import_preview(canvas=canvas, user=user, document=document, choices=choices, told=told)
    file.seek(0)
    return StreamingHttpResponse(
        iter(lambda: file.read(2**16), ""),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="import-report.csv"'},
    )


def _cell(text: str) -> str:
    """What a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _ascii(name: str) -> str:
    return name.encode("ascii", "ignore").decode() or "rois"
