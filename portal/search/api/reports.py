"""REST: reports of searches."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from ml.types import JsonObject
from portal.annotations.selectors.rois import roi_get
from portal.core.api.views import ApiViewSet
from portal.core.errors import InvalidInputError
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.embeddings.api import RETRY_AFTER_S
from portal.embeddings.serializers import EmbeddingPendingSerializer
from portal.jobs.api import job_accepted
from portal.jobs.models import Job
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.search.api.similar_cases import options_of
from portal.search.downloads.reports import report_response
from portal.search.models import Report
from portal.search.selectors.queries import query_get
from portal.search.selectors.reports import (
    report_changes,
    report_get,
    report_interpretation,
    report_interpretations,
    report_list,
    report_regions,
)
from portal.search.selectors.similar_cases import SimilarResult
from portal.search.serializers.reports import (
    ReportComparisonSerializer,
    ReportCreateSerializer,
    ReportDetailSerializer,
    ReportInterpretationSerializer,
    ReportInterpretSerializer,
    ReportSerializer,
    changes_represent,
    report_represent,
)
from portal.search.services.reports import report_delete, report_interpret, report_repeat
from portal.search.services.similar_cases import query_search, roi_search
from portal.search.thumbnails.reports import report_save

_PENDING = OpenApiResponse(
    EmbeddingPendingSerializer,
    description="The query is being embedded, or pictures are being made; ask again",
)


@audited(
    list=AuditRule("report.listed", every_s=HOUR_S),
    create=rejections("report.created"),
    retrieve=AuditRule("report.viewed", "report", "pk", every_s=MINUTE_S),
    destroy=rejections("report.deleted", "report", "pk"),
    again=AuditRule("report.repeated", "report", "pk", every_s=MINUTE_S),
    pdf=AuditRule("report.downloaded", "report", "pk"),
    interpretations=AuditRule("report.viewed", "report", "pk", every_s=MINUTE_S),
    interpret=rejections("report.interpreted", "report", "pk"),
)
class ReportViewSet(mixins.ListModelMixin, ApiViewSet[Report]):
    """Reports: searches with their results at the time, which never change."""

    area = TokenArea.SEARCH
    holds_transaction = False  # searches and renders pictures
    serializer_class = ReportSerializer
    queryset = Report.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Report]:
        """Newest first."""
        return report_list(user_of(self.request))

    @extend_schema(
        request=ReportCreateSerializer, responses={201: ReportDetailSerializer, 202: _PENDING}
    )
    def create(self, request: Request) -> Response:
        """Search with `roi` or `query` and save the result, up to 50 hits, with pictures.

        The other fields are those of a search. `202` if the query has no vector yet, and while a
        job makes the pictures of many hits: repeat the request when the job has ended.
        """
        user = user_of(request)
        serializer = ReportCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        outcome: SimilarResult | Report | Job
        if data.get("roi"):
            roi = roi_get(user, data["roi"], with_shared=False)
            options = options_of(user, roi.lab_id, data)
            outcome = roi_search(roi=roi, user=user, options=options, use_judgements=data["judged"])
        elif data.get("query"):
            query = query_get(user, data["query"])
            options = options_of(user, query.lab_id, data)
            outcome = query_search(query=query, user=user, options=options)
        else:
            raise InvalidInputError("roi, query: give one of them.")
        if isinstance(outcome, SimilarResult):
            outcome = report_save(outcome, user, interpretation=data["interpretation"])
        if isinstance(outcome, Job):
            response = job_accepted(outcome, request, report=None)
            response["Retry-After"] = str(RETRY_AFTER_S)
            return response
        set_audited_id(request, outcome.pk)
        return Response(_report_json(request, report_get(user, outcome.pk)), status=201)

    @extend_schema(responses=ReportDetailSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        """A report with its results, except those erased with their patient."""
        user = user_of(request)
        return Response(_report_json(request, report_get(user, self.get_object().pk)))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a report. Its author and managers only."""
        report = self.get_object()
        report_delete(report=report, user=user_of(request))
        return Response(status=204)

    @extend_schema(
        operation_id="report_again", responses={200: ReportComparisonSerializer, 202: _PENDING}
    )
    @action(detail=True, methods=["get"])
    def again(self, request: Request, pk: str) -> Response:
        """Repeat the search and list the changes. `409` if it cannot be repeated."""
        user = user_of(request)
        report = report_get(user, self.get_object().pk)
        result = report_repeat(report=report, user=user)
        if isinstance(result, Job):
            response = job_accepted(result, request, report=str(report.pk))
            response["Retry-After"] = str(RETRY_AFTER_S)
            return response
        before = list(report_regions(user, report))
        return Response(changes_represent(report_changes(report, before, result)))

    @extend_schema(
        operation_id="report_interpretations", responses=ReportInterpretationSerializer(many=True)
    )
    @action(detail=True, methods=["get"])
    def interpretations(self, request: Request, pk: str) -> Response:
        """All versions of the interpretation, newest first."""
        rows = report_interpretations(user_of(request), self.get_object())
        page: Any = self.paginate_queryset(rows)  # type: ignore[arg-type]
        return self.get_paginated_response(ReportInterpretationSerializer(page, many=True).data)

    @extend_schema(
        operation_id="report_interpret",
        request=ReportInterpretSerializer,
        responses={201: ReportInterpretationSerializer},
    )
    @interpretations.mapping.post
    def interpret(self, request: Request, pk: str) -> Response:
        """Write a version of the interpretation. 412 if `version` is no longer the last one."""
        body = ReportInterpretSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        interpretation = report_interpret(
            report=self.get_object(), user=user_of(request), **body.validated_data
        )
        return Response(ReportInterpretationSerializer(interpretation).data, status=201)

    @extend_schema(
        operation_id="report_pdf",
        responses={(200, "application/pdf"): OpenApiTypes.BINARY},
    )
    @action(detail=True, methods=["get"])
    def pdf(self, request: Request, pk: str) -> HttpResponse:
        """The report as PDF of A4 pages."""
        user = user_of(request)
        return report_response(request, user, report_get(user, self.get_object().pk))


def _report_json(request: Request, report: Report) -> JsonObject:
    user = user_of(request)
    interpretation = report_interpretation(user, report)
    return report_represent(report, report_regions(user, report), interpretation) | {
        "pdf_url": reverse("api:report-pdf", args=[report.pk])
    }
