"""``/api/v1/cases/{id}/export/``: a whole case as an RO-Crate."""

from __future__ import annotations

import uuid
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiView
from portal.exchange.downloads import export_response
from portal.exchange.services import case_export_request
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import user_of

_ID = OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)


class CaseExportApi(ApiView):
    """Managers only, of a case of their own lab."""

    area = TokenArea.CASES

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """A zip; errors are problem+json."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        operation_id="case_export_order",
        summary="Order the export of a whole case",
        parameters=[_ID],
        request=None,
        responses={202: OpenApiResponse(JobSerializer, "Being written")},
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Originals, records with the ids they have here, history, mosaics and embeddings."""
        return job_accepted(case_export_request(user=user_of(request), case_id=id), request)

    @extend_schema(
        operation_id="case_export",
        summary="The export of a whole case",
        parameters=[_ID],
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, id: uuid.UUID) -> HttpResponseBase:
        """One's own newest, an RO-Crate 1.1; 404 before it is written and two days after it was."""
        return export_response(request._request, user=user_of(request), case_id=id)
