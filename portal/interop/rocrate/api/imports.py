"""``/api/v1/uploads/{id}/import/``: a whole case from a crate that was sent."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiView
from portal.core.http.audit_rules import AuditRule, audited
from portal.interop.rocrate.services.imports.jobs import case_import_request
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import user_of


@audited(POST=AuditRule("case.import_requested", "upload", "id"))
class CaseImportApi(ApiView):
    """Managers only, into a lab of their own."""

    area = TokenArea.CASES

    @extend_schema(
        operation_id="case_import",
        summary="Import a case",
        parameters=[OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)],
        request=None,
        responses={202: OpenApiResponse(JobSerializer, "Being imported")},
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Import an uploaded RO-Crate as written by an export.

        The upload must name a `lab` in its metadata.

        The job checks everything before it writes; `result` has the case and the number of records.
        After a failure the crate is kept for two days, so that the request can be repeated.
        """
        return job_accepted(case_import_request(user=user_of(request), upload_id=id), request)
