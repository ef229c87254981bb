"""REST: answers of searches, frozen."""

from __future__ import annotations

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
from portal.annotations.selectors import roi_get
from portal.core.api.views import ApiViewSet
from portal.core.errors import InvalidInputError
from portal.core.http.acting import about
from portal.jobs.api import job_accepted
from portal.jobs.models import Job
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.retrieval import selectors, services
from portal.retrieval.api.search import RETRY_AFTER_S, EmbeddingPendingSerializer, options_of
from portal.retrieval.downloads import report_response
from portal.retrieval.models import Report
from portal.retrieval.selectors import SimilarResult
from portal.retrieval.serializers import (
    ReportAgainSerializer,
    ReportAskSerializer,
    ReportSerializer,
    ReportWholeSerializer,
    changes_represent,
    report_represent,
)
from portal.retrieval.thumbnails import report_keep

_PENDING = OpenApiResponse(
    EmbeddingPendingSerializer,
    description="The query is being embedded, or pictures are being made; ask again",
)


class ReportViewSet(mixins.ListModelMixin, ApiViewSet[Report]):
    """Reports of searches: what was asked and what was found at that time. They never change."""

    area = TokenArea.SEARCH
    works_apart = True  # it searches, and makes pictures
    serializer_class = ReportSerializer
    queryset = Report.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Report]:
        """The newest first."""
        return selectors.report_list(user_of(self.request))

    @extend_schema(
        request=ReportAskSerializer, responses={201: ReportWholeSerializer, 202: _PENDING}
    )
    def create(self, request: Request) -> Response:
        """Search with `roi` or `query` and keep the answer, up to 50 results, with its pictures.

        The other fields are those of a search. `202` where what is searched with has no vector
        yet, and while a job makes the pictures of many results: ask again when it has ended.
        """
        user = user_of(request)
        asked = ReportAskSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        found: SimilarResult | Report | Job
        if wanted.get("roi"):
            roi = roi_get(user, wanted["roi"], with_shared=False)
            options = options_of(user, roi.lab_id, wanted)
            found = services.similar_or_embed(
                roi=roi, user=user, options=options, by_marks=wanted["judged"]
            )
        elif wanted.get("query"):
            query = selectors.query_get(user, wanted["query"])
            options = options_of(user, query.lab_id, wanted)
            found = services.similar_to_query(query=query, user=user, options=options)
        else:
            raise InvalidInputError("roi, query: give one of them.")
        if isinstance(found, SimilarResult):
            found = report_keep(found, user)
        if isinstance(found, Job):
            response = job_accepted(found, request, report=None)
            response["Retry-After"] = str(RETRY_AFTER_S)
            return response
        about(request, found.pk)
        return Response(_whole(request, selectors.report_get(user, found.pk)), status=201)

    @extend_schema(responses=ReportWholeSerializer)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One report with its results; those that were erased with their patient are missing."""
        user = user_of(request)
        return Response(_whole(request, selectors.report_get(user, self.get_object().pk)))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a report that you made, or, as a manager, any."""
        found = self.get_object()
        services.report_delete(report=found, user=user_of(request))
        return Response(status=204)

    @extend_schema(
        operation_id="report_again", responses={200: ReportAgainSerializer, 202: _PENDING}
    )
    @action(detail=True, methods=["get"])
    def again(self, request: Request, pk: str) -> Response:
        """Ask the same again, and say what has changed. `409` where it cannot be asked any more."""
        user = user_of(request)
        found = selectors.report_get(user, self.get_object().pk)
        result = services.report_again(report=found, user=user)
        if isinstance(result, Job):
            response = job_accepted(result, request, report=str(found.pk))
            response["Retry-After"] = str(RETRY_AFTER_S)
            return response
        before = list(selectors.report_regions(user, found))
        return Response(changes_represent(selectors.report_changes(found, before, result)))

    @extend_schema(
        operation_id="report_pdf",
        responses={(200, "application/pdf"): OpenApiTypes.BINARY},
    )
    @action(detail=True, methods=["get"])
    def pdf(self, request: Request, pk: str) -> HttpResponse:
        """The report on A4 pages."""
        user = user_of(request)
        return report_response(request, user, selectors.report_get(user, self.get_object().pk))


def _whole(request: Request, report: Report) -> JsonObject:
    regions = selectors.report_regions(user_of(request), report)
    return report_represent(report, regions) | {
        "pdf_url": reverse("api:report-pdf", args=[report.pk])
    }
