"""Results of a study: agreement, findings, decisions."""

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

from portal.archive.selectors import canvas_get
from portal.core.api.paging import InOrder
from portal.core.api.views import ApiView
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.reading import selectors, services
from portal.reading.agreement import Finding
from portal.reading.downloads import agreement_download
from portal.reading.models import Decision, Study
from portal.reading.selectors.choosing import labels_named
from portal.reading.serializers import (
    DecideSerializer,
    FindingQuerySerializer,
    FindingSerializer,
    StudyAgreementSerializer,
    finding_represent,
    pairs_represent,
)


class StudyAgreementApi(ApiView):
    """How far readers agree."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="studies_agreement",
        responses=StudyAgreementSerializer,
        summary="Show how far the readers of a study agree",
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Of the images that two or more have handed in and that are not blind."""
        results = selectors.image_results(selectors.study_get(user_of(request), id))
        images = [
            {
                "canvas": one.canvas.pk,
                "canvas_name": one.canvas.name,
                "left_out": one.left_out,
                "pairs": pairs_represent(one.pairs),
            }
            for one in results
        ]
        pairs = pairs_represent(selectors.agreement_of(results))
        return Response(StudyAgreementSerializer({"pairs": pairs, "images": images}).data)


class StudyAgreementTableApi(ApiView):
    """The same as a file."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="studies_agreement_table",
        responses={(200, "text/csv"): OpenApiTypes.STR},
        summary="Download the agreement of a study as CSV",
    )
    def get(self, request: Request, id: uuid.UUID) -> StreamingHttpResponse:
        """One line for each image, pair of readers and label."""
        return agreement_download(selectors.study_get(user_of(request), id))


class StudyFindingsApi(ApiView, GenericAPIView[Study]):
    """What the readers found on an image."""

    area = TokenArea.ROIS
    queryset = Study.objects.none()
    serializer_class = FindingSerializer
    filter_backends = ()

    @extend_schema(
        operation_id="studies_findings_list",
        parameters=[FindingQuerySerializer],
        responses=FindingSerializer(many=True),
        summary="List what the readers found on an image, disagreements first",
    )
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """With each reader's outline, and the consensus where somebody decided."""
        user = user_of(request)
        study = selectors.study_get(user, id)
        query = FindingQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        canvas = canvas_get(user=user, canvas_id=query.validated_data["canvas"])
        result = selectors.image_result(study, canvas)
        found: Any = InOrder("findings", result.findings, lambda one: one.place)
        page: Any = self.paginate_queryset(found)
        return self.get_paginated_response(_represent(study, result, page))


class StudyDecideApi(ApiView):
    """Decide between readers."""

    area = TokenArea.ROIS

    @extend_schema(
        operation_id="studies_decide",
        request=DecideSerializer,
        responses=FindingSerializer(many=True),
        summary=(
            "Decide what is there: a reader's region, all regions merged, a newly drawn one, or "
            "nothing"
        ),
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """For a reviewer who is not a reader of the study. Each finding gets one consensus region.

        Returns the findings that were decided.
        """
        user = user_of(request)
        study = selectors.study_get(user, id)
        body = DecideSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        canvas = canvas_get(user=user, canvas_id=asked["canvas"])
        if asked["choice"] == "undo":
            for one in asked["findings"]:
                services.decision_undo(study=study, user=user, finding=one)
        else:
            named = labels_named(study.lab, [asked["label"]] if asked.get("label") else [])
            services.findings_decide(
                study=study,
                canvas=canvas,
                user=user,
                findings=asked["findings"],
                choice=asked["choice"],
                reader=asked.get("reader"),
                label=named[0] if named else None,
                roi_id=asked.get("roi"),
            )
        result = selectors.image_result(study, canvas)
        decided = [one for one in result.findings if one.id in asked["findings"]]
        return Response(_represent(study, result, decided))


def _represent(study: Study, result: selectors.ImageResult, found: Sequence[Finding]) -> Any:
    rows = Decision.objects.filter(
        study=study, canvas=result.canvas, finding__in=[one.id for one in found]
    )
    decisions = {one.finding: one for one in rows}
    shown = [finding_represent(one, result, decisions.get(one.id)) for one in found]
    return FindingSerializer(shown, many=True).data
