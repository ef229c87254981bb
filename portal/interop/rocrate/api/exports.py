"""Whole cases as RO-Crates: ``/api/v1/cases/{id}/export/``, and many at once."""

from __future__ import annotations

import uuid
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.filters import cases_chosen
from portal.archive.serializers.bulk import CaseSelectionSerializer
from portal.core.api.views import ApiView
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.interop.rocrate.downloads import export_response, exports_response
from portal.interop.rocrate.selectors.exports import export_job_get
from portal.interop.rocrate.services.exports import case_export_request, cases_export_request
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import user_of

_ID = OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)


@audited(
    GET=AuditRule("case.downloaded", "case", "id"),
    POST=AuditRule("case.export_requested", "case", "id"),
)
class CaseExportApi(ApiView):
    """Managers only, of a case of their own lab."""

    area = TokenArea.CASES

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """A zip; errors are problem+json."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        operation_id="case_export_request",
        summary="Export a case",
        parameters=[_ID],
        request=None,
        responses={202: OpenApiResponse(JobSerializer, "Being written")},
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Submit the job that exports originals, records with their ids, history, mosaics and
        embeddings.
        """
        return job_accepted(case_export_request(user=user_of(request), case_id=id), request)

    @extend_schema(
        operation_id="case_export",
        summary="Download the export of a case",
        parameters=[_ID],
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, id: uuid.UUID) -> HttpResponseBase:
        """Download the user's newest export, an RO-Crate 1.1; 404 before it is written and after
        two days.
        """
        return export_response(request._request, user=user_of(request), case_id=id)


@audited(POST=AuditRule("case.export_requested"))
class CasesExportApi(ApiView):
    """Exports of many cases, ordered by managers of their lab."""

    area = TokenArea.CASES

    @extend_schema(
        operation_id="cases_bulk_export",
        summary="Export many cases",
        request=CaseSelectionSerializer,
        responses={202: OpenApiResponse(JobSerializer, "Being written, one after the other")},
    )
    def post(self, request: Request) -> Response:
        """Submit one job that exports the given cases of one lab."""
        body = CaseSelectionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        user = user_of(request)
        ids = cases_chosen(user, dict(body.validated_data))
        return job_accepted(cases_export_request(user=user, case_ids=ids), request)


@audited(GET=rejections("case.downloaded"))
class CasesExportFileApi(ApiView):
    """Download the exports written by a job of the user."""

    area = TokenArea.CASES

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """A zip; errors are problem+json."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        operation_id="cases_bulk_export_file",
        summary="Download the exports of many cases",
        parameters=[_ID],
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, id: uuid.UUID) -> HttpResponseBase:
        """Download a ZIP archive with an RO-Crate of each case; 404 after two days."""
        user = user_of(request)
        return exports_response(user=user, job=export_job_get(user=user, job_id=id))
