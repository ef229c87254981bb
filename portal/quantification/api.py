"""REST: figures of a region, its nuclei, a table of a case, thresholds of a lab."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.http import StreamingHttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors.rois import roi_get
from portal.archive.selectors.cases import case_get
from portal.core.api.views import ApiView
from portal.core.errors import NotFoundError
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited, rejections
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.api.settings import LabSettingsApi
from portal.labs.models import Lab, TokenArea, User
from portal.labs.requests import user_of
from portal.quantification.downloads import figures_download
from portal.quantification.models import QuantificationSettings
from portal.quantification.selectors import (
    case_figures,
    region_figures,
    region_nuclei,
    settings_of,
)
from portal.quantification.serializers import (
    CaseCsvParamsSerializer,
    NucleiSerializer,
    QuantificationSettingsSerializer,
    QuantificationStartSerializer,
    RegionFiguresSerializer,
    figures_represent,
    nuclei_represent,
)
from portal.quantification.services import quantification_settings_set, quantification_start

_ROI_ID = OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH)


@audited(
    GET=AuditRule("roi.viewed", "roi", "roi_id", every_s=MINUTE_S),
    POST=AuditRule("roi.quantified", "roi", "roi_id"),
)
class RoiQuantificationApi(ApiView):
    """Nuclei, stained area and stain means of an ROI."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="roi_quantification",
        parameters=[_ROI_ID],
        responses=RegionFiguresSerializer,
        summary="Show the figures of a region",
    )
    def get(self, request: Request, roi_id: uuid.UUID) -> Response:
        """The newest figures, and whether the outline or the pixel size has changed since."""
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        return Response(figures_represent(roi.pk, region_figures(user, roi)))

    @extend_schema(
        operation_id="roi_quantify",
        parameters=[_ROI_ID],
        request=QuantificationStartSerializer,
        responses={202: JobSerializer},
        summary="Measure a region",
    )
    def post(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Submit the measurement of a region.

        400 `no-section`, `no-area`, `unknown-pixel-size` or `too-large` if it cannot be measured.
        """
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        body = QuantificationStartSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        staining = body.validated_data.get("staining", "")
        return job_accepted(quantification_start(roi=roi, user=user, staining=staining), request)


@audited(GET=AuditRule("roi.viewed", "roi", "roi_id", every_s=MINUTE_S))
class RoiNucleiApi(ApiView):
    """Nuclei that were counted in an ROI."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="roi_nuclei",
        parameters=[_ROI_ID],
        responses=NucleiSerializer,
        summary="List the nuclei of a region",
    )
    def get(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Nuclei of the newest measurement; 404 if the region was never measured."""
        user = user_of(request)
        row = region_nuclei(user, roi_get(user, roi_id, with_shared=False))
        if row is None:
            raise NotFoundError("This region was never measured.", code="not-measured")
        return Response(nuclei_represent(row))


@audited(GET=AuditRule("roi.exported", "case", "case_id"))
class CaseFiguresApi(ApiView):
    """Figures of a case as a CSV file."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="case_quantification_table",
        parameters=[
            CaseCsvParamsSerializer,
            OpenApiParameter("case_id", uuid.UUID, OpenApiParameter.PATH),
        ],
        responses={(200, "text/csv"): OpenApiTypes.STR},
        summary="Download the figures of a case or an image as CSV",
    )
    def get(self, request: Request, case_id: uuid.UUID) -> StreamingHttpResponse:
        """A row for each measured region."""
        user = user_of(request)
        case = case_get(user=user, case_id=case_id, with_shared=False)
        params = CaseCsvParamsSerializer(data=request.query_params)
        params.is_valid(raise_exception=True)
        canvas_id = params.validated_data.get("canvas")
        return figures_download(case, case_figures(user, case, canvas_id=canvas_id))


@audited(PUT=rejections("quantification_settings.changed", "lab", "id"))
@extend_schema_view(
    get=extend_schema(
        operation_id="quantification_settings_retrieve", summary="Show the thresholds of a lab"
    ),
    put=extend_schema(
        operation_id="quantification_settings_update",
        summary="Set the thresholds of a lab",
        description=("For managers. They hold for new measurements; older figures name their own."),
    ),
)
class QuantificationSettingsApi(LabSettingsApi[QuantificationSettings]):
    """Thresholds by which a lab measures."""

    serializer_class = QuantificationSettingsSerializer

    def current(self, lab: Lab) -> QuantificationSettings:
        """The thresholds of the lab, or the usual ones."""
        return settings_of(lab.pk)

    def change(
        self, lab: Lab, user: User, row: QuantificationSettings, data: Mapping[str, Any]
    ) -> QuantificationSettings:
        """Set the given thresholds."""
        return quantification_settings_set(lab=lab, user=user, **data)


urlpatterns = [
    path(
        "rois/<uuid:roi_id>/quantification/",
        RoiQuantificationApi.as_view(),
        name="roi-quantification",
    ),
    path("rois/<uuid:roi_id>/nuclei/", RoiNucleiApi.as_view(), name="roi-nuclei"),
    path(
        "cases/<uuid:case_id>/quantification.csv",
        CaseFiguresApi.as_view(),
        name="case-quantification-table",
    ),
    path(
        "quantification-settings/<uuid:id>/",
        QuantificationSettingsApi.as_view(),
        name="quantification-settings",
    ),
]
