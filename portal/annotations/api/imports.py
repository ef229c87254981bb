"""``/api/v1/roi-imports/``: documents that are previewed and imported by jobs."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import FileResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.annotations.api.reports import ImportReportSerializer, ImportUndoneSerializer
from portal.annotations.models import RoiImport
from portal.annotations.selectors import rois as selectors
from portal.annotations.services.exchange import ImportChoices
from portal.annotations.services.imports import roi_import_undo_start
from portal.annotations.services.staged import import_folder, roi_import_start
from portal.core.api.views import ApiView
from portal.core.errors import NotFoundError
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited
from portal.core.http.downloads import attachment
from portal.core.text import name_key, stem_of
from portal.jobs.models import Job
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import user_of

_ID = OpenApiParameter("import_id", uuid.UUID, OpenApiParameter.PATH)


class OutlineSerializer(serializers.Serializer[Any]):
    """A rough outline of what would be made."""

    status = serializers.ChoiceField(["created", "updated", "restored", "unchanged"])
    rings = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()),
        help_text="x, y alternating, in level-0 pixels",
    )

    def get_fields(self) -> dict[str, Any]:
        """Add ``class``, which is a keyword of Python."""
        return {"class": serializers.CharField(), **super().get_fields()}


class StoredReportSerializer(ImportReportSerializer):
    """The same report as of an import at once; a preview adds outlines to draw."""

    outlines = OutlineSerializer(many=True, required=False)


class RoiImportSerializer(serializers.ModelSerializer[RoiImport]):
    """An import: document, current job, progress and results."""

    name = serializers.CharField(source="document_name", read_only=True)
    job = serializers.SerializerMethodField()
    report = serializers.SerializerMethodField(
        help_text="null until something is known; partial while the import is running"
    )
    undone = ImportUndoneSerializer(
        allow_null=True, read_only=True, help_text="Partial while the import is being undone"
    )

    class Meta:
        model = RoiImport
        fields = (
            "id",
            "canvas",
            "format",
            "name",
            "stage",
            "done",
            "job",
            "report",
            "undone",
            "undone_at",
            "created_at",
        )
        read_only_fields = fields

    @extend_schema_field(JobSerializer(allow_null=True))
    def get_job(self, row: RoiImport) -> JsonObject | None:
        """Most recently submitted job of the import."""
        jobs = Job.objects.select_related("lab", "created_by")
        job = jobs.filter(pk=row.job_id).first() if row.job_id else None
        if job is None:
            return None
        job.hides_name = False  # type: ignore[attr-defined] # the canvas was found to be shown
        return dict(JobSerializer(job).data)

    @extend_schema_field(StoredReportSerializer(allow_null=True))
    def get_report(self, row: RoiImport) -> JsonObject | None:
        """Stored report of the import."""
        return row.report


class ImportStartSerializer(serializers.Serializer[Any]):
    """Options for continuing an import."""

    dry_run = serializers.BooleanField(required=False, default=False, help_text="Preview it again")
    create_labels = serializers.BooleanField(required=False, allow_null=True, default=None)
    labels = serializers.JSONField(
        required=False,
        default=dict,
        help_text='The label for each class: {"Class": "<id of a label>"}, or null for no label',
    )

    def validate_labels(self, value: object) -> dict[str, uuid.UUID | None]:
        """Labels by lower-case name."""
        return chosen_labels(value)


def chosen_labels(value: object) -> dict[str, uuid.UUID | None]:
    """Label ids by ``name_key`` of a class; None for no label."""
    if not isinstance(value, dict):
        raise serializers.ValidationError("Expected an object.")
    try:
        return {
            name_key(str(name)): None if label is None else uuid.UUID(str(label))
            for name, label in value.items()
        }
    except ValueError:
        raise serializers.ValidationError("Expected ids of labels, or null.") from None


def accepted(row: RoiImport) -> Response:
    """202 with the import and where its job is."""
    where = reverse("api:job-detail", args=[row.job_id]) if row.job_id else ""
    return Response(RoiImportSerializer(row).data, status=202, headers={"Location": where})


@audited(GET=AuditRule("roi.imported", "canvas", every_s=HOUR_S, only_tokens=True))
class RoiImportApi(ApiView):
    """A document."""

    area = TokenArea.ROIS

    @extend_schema(responses=RoiImportSerializer, parameters=[_ID], summary="Show an import")
    def get(self, request: Request, import_id: uuid.UUID) -> Response:
        """Progress and results of an import."""
        roi_import = selectors.roi_import_get(user_of(request), import_id)
        set_audited_id(request, roi_import.canvas_id)
        return Response(RoiImportSerializer(roi_import).data)


@audited(POST=AuditRule("roi.imported", "canvas"))
class RoiImportStartApi(ApiView):
    """Import a stored document, or preview it again."""

    area = TokenArea.ROIS

    @extend_schema(
        request=ImportStartSerializer,
        responses={202: RoiImportSerializer},
        parameters=[_ID],
        summary="Import a document that was previewed",
    )
    def post(self, request: Request, import_id: uuid.UUID) -> Response:
        """Submit the job that imports the document; `Location` names it.

        409 while another import of the document runs.
        """
        roi_import = selectors.roi_import_get(user_of(request), import_id)
        set_audited_id(request, roi_import.canvas_id)
        body = ImportStartSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        started = roi_import_start(
            row=roi_import,
            user=user_of(request),
            choices=ImportChoices(data["create_labels"], data["labels"]),
            is_preview=data["dry_run"],
        )
        return accepted(started)


@audited(GET=AuditRule("roi.imported", "canvas"))
class RoiImportTableApi(ApiView):
    """Result of each feature as CSV, one line per feature."""

    area = TokenArea.ROIS

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=[_ID],
        summary="Download the reasons of an import as CSV",
    )
    def get(self, request: Request, import_id: uuid.UUID) -> FileResponse:
        """Features that were changed or refused, with the reason. Kept for two days, then 404."""
        roi_import = selectors.roi_import_get(user_of(request), import_id)
        set_audited_id(request, roi_import.canvas_id)
        try:
            file = (import_folder(roi_import) / "report.csv").open("rb")
        except FileNotFoundError:
            raise NotFoundError(
                "This import has no table, or its table is no longer kept."
            ) from None
        stem = stem_of(roi_import.document_name or "document")
        name = attachment(stem, "-import.csv", fallback="document")
        return FileResponse(
            file,
            content_type="text/csv",
            headers={"Content-Disposition": name},
        )


@audited(POST=AuditRule("roi.import_undone", "canvas"))
class RoiImportUndoApi(ApiView):
    """Undo an import."""

    area = TokenArea.ROIS

    @extend_schema(
        request=None,
        responses={200: ImportUndoneSerializer, 202: RoiImportSerializer},
        parameters=[_ID],
        summary="Undo an import",
    )
    def post(self, request: Request, import_id: uuid.UUID) -> Response:
        """Delete the ROIs that the import created and revert those that it changed, unless they
        were changed since.

        For more than a thousand ROIs a job is submitted (202, named by `Location`), and `undone`
        counts its progress. A cancelled undo continues when it is requested again.
        """
        roi_import = selectors.roi_import_get(user_of(request), import_id)
        set_audited_id(request, roi_import.canvas_id)
        undone = roi_import_undo_start(roi_import=roi_import, user=user_of(request))
        if undone is None:
            return accepted(roi_import)
        return Response(ImportUndoneSerializer(undone).data)
