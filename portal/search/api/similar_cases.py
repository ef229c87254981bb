"""REST: search for similar ROIs, and judgements of hits."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors.labels import label_get
from portal.annotations.selectors.rois import roi_get
from portal.core.api.views import ApiView
from portal.core.errors import NotFoundError
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import AuditRule, audited
from portal.embeddings.api import RETRY_AFTER_S
from portal.embeddings.serializers import EmbeddingPendingSerializer
from portal.jobs.api import job_accepted
from portal.labs.models import TokenArea, User
from portal.labs.requests import user_of
from portal.search.models import Judgement, Verdict
from portal.search.selectors.filters import FILTER_TITLES, CaseScope, Filters
from portal.search.selectors.judgements import judgements_of
from portal.search.selectors.similar_cases import SimilarOptions, SimilarResult, roi_to_search
from portal.search.serializers.requests import (
    JudgementSerializer,
    SearchSerializer,
    SimilarQuerySerializer,
)
from portal.search.serializers.results import SimilarSerializer, similar_represent
from portal.search.services.judgements import judgement_clear, judgement_set
from portal.search.services.similar_cases import roi_search

ANSWERS = {
    200: SimilarSerializer,
    202: OpenApiResponse(
        EmbeddingPendingSerializer,
        description=(
            "The ROI or query has no vector for its current outline yet. `job` makes it (it was "
            "submitted if there was none); ask again when it has succeeded. `Retry-After` says "
            "when to look."
        ),
    ),
}


_ROI_ID = OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH)


@audited(POST=AuditRule("search.made", "roi"))
class SearchApi(ApiView):
    """Search for similar ROIs."""

    area = TokenArea.SEARCH
    takes_no_key = "This operation only reads."
    reads_by_post = True  # a read-only token may POST it

    @extend_schema(operation_id="search", request=SearchSerializer, responses=ANSWERS)
    def post(self, request: Request) -> Response:
        """Find the ROIs of the ROI's lab that are most similar to it.

        With an ROI that another lab shares, the ROIs of the lab it is shared with are searched.

        The newest ROIs take part: an ROI is found as soon as its embedding is saved, until it is
        deleted or redrawn. `409` if the ROI is deleted or could not be embedded.
        """
        serializer = SearchSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        return _answer(request, data["roi"], data | data.get("filters", {}))


@audited(GET=AuditRule("search.made", "roi", "roi_id"))
class RoiSimilarApi(ApiView):
    """Search for similar ROIs by GET."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_similar",
        parameters=[
            SimilarQuerySerializer,
            _ROI_ID,
        ],
        responses=ANSWERS,
    )
    def get(self, request: Request, roi_id: uuid.UUID) -> Response:
        """ROIs similar to an ROI; see `POST /search/`."""
        serializer = SimilarQuerySerializer(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        return _answer(request, roi_id, serializer.validated_data)


@audited(POST=AuditRule("search.judged", "roi", "roi_id"))
class RoiJudgementsApi(ApiView, GenericAPIView[Judgement]):
    """Your judgements of hits of one ROI."""

    area = TokenArea.SEARCH
    queryset = Judgement.objects.none()
    serializer_class = JudgementSerializer
    filter_backends = ()

    @extend_schema(
        operation_id="roi_judgements",
        parameters=[_ROI_ID],
        responses=JudgementSerializer(many=True),
    )
    def get(self, request: Request, roi_id: uuid.UUID) -> Response:
        """List the user's judgements of hits of this region, oldest first."""
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        page = self.paginate_queryset(judgements_of(user, roi))
        return self.get_paginated_response(JudgementSerializer(page, many=True).data)

    @extend_schema(
        operation_id="roi_judge",
        parameters=[_ROI_ID],
        request=JudgementSerializer,
        responses={200: JudgementSerializer},
    )
    def post(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Judge a region to be like the ROI, or not; the last judgement counts.

        A search with `judged` uses it.
        """
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        serializer = JudgementSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        set_audited_id(request, roi.pk)
        judgement: Judgement = judgement_set(
            roi=roi,
            other_id=serializer.validated_data["other_id"],
            verdict=Verdict(serializer.validated_data["verdict"]),
            user=user,
        )
        return Response(JudgementSerializer(judgement).data)


@audited(DELETE=AuditRule("search.judged", "roi", "roi_id"))
class RoiJudgementApi(ApiView):
    """Your judgement of one hit."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_judgement_clear",
        parameters=[_ROI_ID, OpenApiParameter("other_id", uuid.UUID, OpenApiParameter.PATH)],
        responses={204: None},
    )
    def delete(self, request: Request, roi_id: uuid.UUID, other_id: uuid.UUID) -> Response:
        """Delete a judgement of the user."""
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        set_audited_id(request, roi.pk)
        judgement_clear(roi=roi, other_id=other_id, user=user)
        return Response(status=204)


def _answer(request: Request, roi_id: uuid.UUID, data: Mapping[str, Any]) -> Response:
    user = user_of(request)
    roi, lab_id = roi_to_search(user, roi_id)
    set_audited_id(request, roi.pk)
    outcome = roi_search(
        roi=roi,
        lab_id=lab_id,
        user=user,
        encoder_id=data.get("encoder"),
        options=options_of(user, lab_id, data),
        use_judgements=data["judged"],
    )
    if isinstance(outcome, SimilarResult):
        return Response(similar_represent(outcome))
    response = job_accepted(outcome, request, roi=str(roi.pk))
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def options_of(user: User, lab_id: uuid.UUID, data: Mapping[str, Any]) -> SimilarOptions:
    """Search options from the fields of ``SimilarQuerySerializer``.

    Raises:
        NotFoundError: The label is not of the searched lab.
    """
    label_id = data.get("label")
    if label_id and label_get(user, label_id).lab_id != lab_id:
        raise NotFoundError("There is no such label.")
    filters = {name: data[name] for name in FILTER_TITLES if data.get(name)}
    case = CaseScope(data.get("case", ""))
    options: SimilarOptions = {
        "k": data["k"],
        "exclude_same_patient": data["exclude_same_patient"],
        "filters": Filters(label_id=label_id, case=case, **filters),
        "by_case": data["by_case"],
        "with_facets": data["facets"],
        "liked": tuple(data.get("liked", ())),
        "unliked": tuple(data.get("unliked", ())),
    }
    if "expand" in data:
        options["expand"] = data["expand"]
    if data.get("diffuse") is not None:
        options["diffuse"] = data["diffuse"]
    return options
