"""REST of results: agreement, findings, decisions."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.archive.selectors.canvases import canvas_get
from portal.core.api.paging import InOrder
from portal.core.api.views import ApiView
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited, rejections
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.reader_studies.agreement import Finding
from portal.reader_studies.downloads import agreement_download
from portal.reader_studies.models import Decision, Study
from portal.reader_studies.selectors.candidates import labels_named
from portal.reader_studies.selectors.results import (
    ImageResult,
    agreement_of,
    image_result,
    image_results,
)
from portal.reader_studies.selectors.studies import study_get
from portal.reader_studies.serializers import (
    DecideSerializer,
    FindingQuerySerializer,
    FindingSerializer,
    StudyAgreementSerializer,
    finding_represent,
    pairs_represent,
)
from portal.reader_studies.services import adjudication as services


@audited(GET=AuditRule("study.viewed", "study", "id", every_s=MINUTE_S))
class StudyAgreementApi(ApiView):
    """Agreement of the readers."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="studies_agreement",
        responses=StudyAgreementSerializer,
        summary="Show the agreement of the readers of a study",
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Agreement on images that at least two readers have submitted and that are not blind."""
        results = image_results(study_get(user_of(request), id))
        images = [
            {
                "canvas": result.canvas.pk,
                "canvas_name": result.canvas.name,
                "left_out": result.left_out,
                "pairs": pairs_represent(result.pairs),
            }
            for result in results
        ]
        pairs = pairs_represent(agreement_of(results))
        return Response(StudyAgreementSerializer({"pairs": pairs, "images": images}).data)


@audited(GET=AuditRule("study.exported", "study", "id"))
class StudyAgreementTableApi(ApiView):
    """Agreement as a CSV file."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="studies_agreement_table",
        responses={(200, "text/csv"): OpenApiTypes.STR},
        summary="Download the agreement of a study as CSV",
    )
    def get(self, request: Request, id: uuid.UUID) -> StreamingHttpResponse:
        """A row for each image, pair of readers and label."""
        return agreement_download(study_get(user_of(request), id))


@audited(GET=AuditRule("study.viewed", "study", "id", every_s=MINUTE_S))
class StudyFindingsApi(ApiView, GenericAPIView[Study]):
    """Findings of the readers on an image."""

    area = TokenArea.ROIS
    queryset = Study.objects.none()
    serializer_class = FindingSerializer
    filter_backends = ()

    @extend_schema(
        operation_id="studies_findings_list",
        parameters=[FindingQuerySerializer],
        responses=FindingSerializer(many=True),
        summary="List the findings of an image, disagreements first",
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Findings of an image with each reader's outline, and the consensus of decided ones."""
        user = user_of(request)
        study = study_get(user, id)
        query = FindingQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        canvas = canvas_get(user=user, canvas_id=query.validated_data["canvas"])
        result = image_result(study, canvas)
        findings: Any = InOrder("findings", result.findings, lambda finding: finding.place)
        page: Any = self.paginate_queryset(findings)
        return self.get_paginated_response(_represent(study, result, page))


@audited(POST=rejections("study.decided", "study", "id"))
class StudyDecideApi(ApiView):
    """Adjudicate findings."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="studies_decide",
        request=DecideSerializer,
        responses=FindingSerializer(many=True),
        summary=(
            "Decide findings: a reader's region, all regions merged, a newly drawn one, or nothing"
        ),
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Decide findings; each gets one consensus region.

        Reviewers who are not readers of the study only.

        Returns the decided findings.
        """
        user = user_of(request)
        study = study_get(user, id)
        body = DecideSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        canvas = canvas_get(user=user, canvas_id=data["canvas"])
        if data["choice"] == "undo":
            for finding_id in data["findings"]:
                services.decision_undo(study=study, user=user, finding=finding_id)
        else:
            labels = labels_named(study.lab, [data["label"]] if data.get("label") else [])
            services.findings_decide(
                study=study,
                canvas=canvas,
                user=user,
                findings=data["findings"],
                choice=data["choice"],
                reader=data.get("reader"),
                label=labels[0] if labels else None,
                roi_id=data.get("roi"),
            )
        result = image_result(study, canvas)
        decided = [finding for finding in result.findings if finding.id in data["findings"]]
        return Response(_represent(study, result, decided))


def _represent(study: Study, result: ImageResult, findings: Sequence[Finding]) -> Any:
    rows = Decision.objects.filter(
        study=study, canvas=result.canvas, finding__in=[finding.id for finding in findings]
    )
    decisions = {row.finding: row for row in rows}
    finding_rows = [
        finding_represent(finding, result, decisions.get(finding.id)) for finding in findings
    ]
    return FindingSerializer(finding_rows, many=True).data
