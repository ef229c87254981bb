"""``/api/v1/cases/{id}/fhir/``: a case as HL7 FHIR."""

from __future__ import annotations

import uuid
from typing import Any

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.models import CanvasKind
from portal.archive.selectors.sharing import share_seen
from portal.core.api.views import ApiView
from portal.core.http.audit_rules import AuditRule, audited
from portal.interop.dicomweb.selectors.objects import object_count
from portal.interop.fhir.formats import MEDIA_TYPE, case_bundle
from portal.interop.http import base_of
from portal.interop.selectors import case_canvases, case_codes
from portal.labs.models import TokenArea
from portal.labs.requests import user_of


@audited(GET=AuditRule("case.exported", "case", "id"))
class CaseFhirApi(ApiView):
    """Out only: reports are signed elsewhere."""

    area = TokenArea.CASES

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """A client asks for its own type of JSON."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        operation_id="case_fhir",
        summary="A case as FHIR",
        parameters=[OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)],
        responses={(200, MEDIA_TYPE): OpenApiTypes.OBJECT},
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """A FHIR R4 Bundle with a DiagnosticReport, an ImagingStudy of up to 500 images, the
        Endpoint that serves them and, if the case has a pseudonym, a Patient.
        """
        user = user_of(request)
        case, canvases = case_canvases(user=user, case_id=id)
        is_own = share_seen(user, case) is None
        slides = [canvas for canvas in canvases if canvas.kind == CanvasKind.SLIDE]
        counts = {slide.pk: object_count(slide) for slide in slides}
        bundle = case_bundle(
            case,
            canvases,
            base_of(request),
            counts=counts,
            codes=case_codes(case),
            with_patient=is_own,
        )
        return Response(bundle, content_type=MEDIA_TYPE)


urlpatterns = [path("cases/<uuid:id>/fhir/", CaseFhirApi.as_view(), name="case-fhir")]
