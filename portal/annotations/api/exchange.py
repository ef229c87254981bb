"""``/api/v1/canvases/{id}/roi-file/``: regions in and out as files of other tools."""

from __future__ import annotations

import csv
import uuid
from collections.abc import Mapping
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.api.imports import RoiImportSerializer, accepted, chosen_labels
from portal.annotations.api.parsers import FileParser
from portal.annotations.api.reports import ImportReportSerializer
from portal.annotations.formats.pictures import MAX_SIDE_PX
from portal.annotations.formats.registry import READERS, WRITERS, writer_named
from portal.annotations.formats.types import ExportChoices
from portal.annotations.formats.unpacking import MAX_BYTES
from portal.annotations.selectors.frames import frame_resolve
from portal.annotations.selectors.rois import roi_export
from portal.annotations.services.exchange import ImportChoices, roi_import, roi_import_preview
from portal.annotations.services.reading import ImportWork, Source, file_source
from portal.annotations.services.reports import TABLE_HEAD, report_json, table_line
from portal.annotations.services.staged import roi_import_stage
from portal.archive.models import Canvas, CanvasKind
from portal.archive.selectors.canvases import canvas_get
from portal.core.api.views import ApiView
from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import AuditRule, audited
from portal.core.http.downloads import attachment
from portal.core.text import stem_of
from portal.labs.models import TokenArea, User
from portal.labs.requests import user_of


class ExportQuerySerializer(serializers.Serializer[Any]):
    """The format to export in, and what a picture shows."""

    format = serializers.ChoiceField(list(WRITERS), required=False, default="geojson")
    downsample = serializers.IntegerField(
        required=False,
        default=1,
        help_text="For `mask`: level-0 pixels per pixel of the mask; 1, 2, 4 to 32",
    )
    roi = serializers.UUIDField(required=False, help_text="For `png`: this ROI with a margin")
    window = serializers.CharField(
        required=False, help_text="For `png`: `left,top,right,bottom` in level-0 pixels"
    )
    width = serializers.IntegerField(
        required=False, default=1600, min_value=64, max_value=MAX_SIDE_PX, help_text="For `png`"
    )
    frame = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        help_text="For `png` of a video: the index of the frame",
    )

    def validate_window(self, value: str) -> tuple[float, ...]:
        """Four numbers."""
        try:
            sides = tuple(float(side) for side in value.split(","))
        except ValueError:
            sides = ()
        if len(sides) != 4 or not all(abs(side) < 1e9 for side in sides):
            raise serializers.ValidationError("Expected left,top,right,bottom.")
        return sides


class ImportQuerySerializer(serializers.Serializer[Any]):
    """Query parameters of an import."""

    format = serializers.ChoiceField(
        ["auto", *READERS],
        required=False,
        default="auto",
        help_text="`auto`: recognised by its content",
    )
    create_labels = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text=(
            "Add unknown classes to the labels of the lab (managers only; the default for them)"
        ),
    )
    labels = serializers.JSONField(
        required=False,
        default=dict,
        help_text='The label for each class: {"Class": "<id of a label>"}, or null for no label',
    )
    strict = serializers.BooleanField(
        required=False, default=False, help_text="Import all features or nothing"
    )
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="Report what an import would do, and write nothing"
    )
    background = serializers.BooleanField(
        required=False,
        default=False,
        help_text=(
            "Answer 202 at once: a job reads the document, and `/roi-imports/` shows its progress"
        ),
    )
    name = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="Name of the file, shown with the import",
    )
    report = serializers.ChoiceField(
        ["json", "csv"],
        required=False,
        default="json",
        help_text="`csv` (with `dry_run`): one line for each feature, without a limit",
    )

    def validate_labels(self, value: object) -> dict[str, uuid.UUID | None]:
        """Labels by lower-case name."""
        return chosen_labels(value)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A CSV table is written for a preview only."""
        if attrs["report"] == "csv" and not attrs["dry_run"]:
            raise serializers.ValidationError({"report": "csv needs dry_run=1."})
        return attrs


class JsonAlways(BaseContentNegotiation):
    """Negotiation that ignores the request: any file is accepted, JSON is returned."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """Return the only parser."""
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """JSON."""
        return renderers[0], renderers[0].media_type


@audited(
    GET=AuditRule("roi.exported", "canvas", "id"), POST=AuditRule("roi.imported", "canvas", "id")
)
class CanvasRoiFileApi(ApiView):
    """The ROIs of a canvas as files, with the events of a video."""

    area = TokenArea.ROIS
    holds_transaction = False  # an import is written in parts
    parser_classes = (FileParser,)
    body_limit_bytes = MAX_BYTES
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = JsonAlways

    @extend_schema(
        operation_id="canvas_roi_file_export",
        responses={
            (200, media_type): OpenApiTypes.OBJECT if "json" in media_type else OpenApiTypes.BINARY
            for media_type in sorted(
                {file_writer.media_type.split(";")[0] for file_writer in WRITERS.values()}
            )
        },
        parameters=[
            ExportQuerySerializer,
            OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH),
        ],
        summary="Export the ROIs of a canvas",
    )
    def get(self, request: Request, id: uuid.UUID) -> StreamingHttpResponse:
        """Stream the ROIs as a file; see docs/guide/reference/formats.md for the formats."""
        user = user_of(request)
        canvas = canvas_get(user=user, canvas_id=id)
        query = ExportQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        data = query.validated_data
        writer = writer_named(data["format"])
        choices = _choices(canvas, data)
        pieces = roi_export(user, canvas, writer=writer, choices=choices)
        name = attachment(stem_of(canvas.name), f"-rois{writer.suffix}", fallback="image")
        return StreamingHttpResponse(
            pieces,
            content_type=writer.media_type,
            headers={"Content-Disposition": name},
        )

    @extend_schema(
        operation_id="canvas_roi_file_import",
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={
            200: OpenApiResponse(ImportReportSerializer, "What became of each feature"),
            202: OpenApiResponse(RoiImportSerializer, "A job does it; `Location` names the job"),
        },
        parameters=[
            ImportQuerySerializer,
            OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH),
        ],
        summary="Import ROIs into a canvas",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response | StreamingHttpResponse:
        """Import a document sent as the body: GeoJSON of QuPath, XML of ASAP or CVAT, or COCO JSON,
        also as gzip or as one or several files in a ZIP archive. At most 2 GiB.

        A feature whose id is that of an ROI of this canvas updates it; importing twice changes
        nothing. Events of a video are read from CVAT and COCO documents.
        """
        canvas = canvas_get(user=user_of(request), canvas_id=id)
        query = ImportQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        data = query.validated_data
        choices = ImportChoices(data["create_labels"], data["labels"], data["strict"])
        user = user_of(request)
        if isinstance(request.data, Mapping):  # without a length, no parser is called
            raise InvalidInputError("The request has no body, so there is no document.")
        file = cast(IO[bytes], request.data)
        if data["background"]:
            row = roi_import_stage(
                canvas=canvas,
                user=user,
                file=file,
                choices=choices,
                is_preview=data["dry_run"],
                format_name=data["format"],
                document_name=data["name"],
            )
            return accepted(row)
        source = file_source(file, canvas, format_name=data["format"])
        if data["report"] == "csv":
            return _table(canvas, user, source, choices)
        if data["dry_run"]:
            report = roi_import_preview(canvas=canvas, user=user, document=source, choices=choices)
        else:
            report = roi_import(canvas=canvas, user=user, document=source, choices=choices)
        return Response(report_json(report))


def _choices(canvas: Canvas, data: dict[str, Any]) -> ExportChoices:
    frame: tuple[int | None, int | None] = (None, None)
    if canvas.kind == CanvasKind.VIDEO and data["format"] == "png":
        resolved = frame_resolve(canvas, index=data["frame"], pts=None)
        frame = (resolved.index, resolved.pts) if resolved else frame
    return ExportChoices(
        downsample=data["downsample"],
        roi_id=data.get("roi"),
        window=data.get("window"),
        width_px=data["width"],
        frame=frame,
    )


def _table(
    canvas: Canvas, user: User, document: Source, choices: ImportChoices
) -> StreamingHttpResponse:
    """Stream the preview as CSV, one line per feature, through a temporary file."""
    file = SpooledTemporaryFile(2**22, "w+", newline="", encoding="utf-8")  # noqa: SIM115 - outlives this call
    writer = csv.writer(file)
    writer.writerow(TABLE_HEAD)
    work = ImportWork(on_item=lambda item: writer.writerow(table_line(item)))
    roi_import_preview(canvas=canvas, user=user, document=document, choices=choices, work=work)
    file.seek(0)
    return StreamingHttpResponse(
        iter(lambda: file.read(2**16), ""),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": attachment("import-report", ".csv", fallback="report")},
    )
