"""REST: encoders, the search for ROIs similar to one, and what people say of its results."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors import label_get, roi_get
from portal.core.api.views import ApiView, ApiViewSet
from portal.core.errors import NotFoundError
from portal.core.http.acting import about
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea, User
from portal.labs.requests import user_of
from portal.retrieval import selectors, services
from portal.retrieval.models import Encoder, Judgement, Verdict
from portal.retrieval.selectors import (
    FILTER_TITLES,
    CaseScope,
    Filters,
    SimilarOptions,
    SimilarResult,
    judgements_of,
    roi_to_search,
)
from portal.retrieval.serializers import (
    EncoderSerializer,
    JudgementSerializer,
    SearchSerializer,
    SimilarQuerySerializer,
    SimilarSerializer,
    similar_represent,
)

RETRY_AFTER_S = 2  # an ROI is embedded in about that time


class EmbeddingPendingSerializer(serializers.Serializer[Any]):
    """What is searched with is being embedded; ask again once the job has succeeded."""

    job = JobSerializer()


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


class EncoderViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Encoder]):
    """Encoders of all labs and those that one's own labs have learned, defaults first."""

    area = TokenArea.SEARCH
    serializer_class = EncoderSerializer
    queryset = Encoder.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Encoder]:
        """No other lab's own."""
        return selectors.encoders_visible(user_of(self.request))


_ROI_ID = OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH)


class SearchApi(ApiView):
    """Similar ROIs."""

    area = TokenArea.SEARCH
    takes_no_key = "This operation only reads."
    reads_by_post = True  # a read-only token may POST it

    @extend_schema(operation_id="search", request=SearchSerializer, responses=ANSWERS)
    def post(self, request: Request) -> Response:
        """Search the ROIs of the ROI's lab for those most similar to it.

        With an ROI that another lab shares, the ROIs of the lab it is shared with are searched.

        The newest saves take part: an ROI is found from the moment its embedding is written, and
        no longer from the moment it is deleted or redrawn. `409` where the ROI is deleted or
        could not be embedded.
        """
        asked = SearchSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        return _answer(request, wanted["roi"], wanted | wanted.get("filters", {}))


class RoiSimilarApi(ApiView):
    """The same search by GET."""

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
        """Similar ROIs of one ROI; see `POST /search/`."""
        asked = SimilarQuerySerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        return _answer(request, roi_id, asked.validated_data)


class RoiJudgementsApi(ApiView, GenericAPIView[Judgement]):
    """Your judgements of the results of searches with one ROI."""

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
        """What you said, in the order you first said it."""
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
        """Say that a region is like the ROI, or not; the last word holds.

        A search with `judged` goes by it.
        """
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        asked = JudgementSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        about(request, roi.pk)
        said: Judgement = services.judgement_set(
            roi=roi,
            other_id=asked.validated_data["other_id"],
            verdict=Verdict(asked.validated_data["verdict"]),
            user=user,
        )
        return Response(JudgementSerializer(said).data)


class RoiJudgementApi(ApiView):
    """Your judgement of one result."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_judgement_clear",
        parameters=[_ROI_ID, OpenApiParameter("other_id", uuid.UUID, OpenApiParameter.PATH)],
        responses={204: None},
    )
    def delete(self, request: Request, roi_id: uuid.UUID, other_id: uuid.UUID) -> Response:
        """Take it back."""
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        about(request, roi.pk)
        services.judgement_clear(roi=roi, other_id=other_id, user=user)
        return Response(status=204)


def _answer(request: Request, roi_id: uuid.UUID, wanted: Mapping[str, Any]) -> Response:
    user = user_of(request)
    roi, lab_id = roi_to_search(user, roi_id)
    about(request, roi.pk)
    found = services.similar_or_embed(
        roi=roi,
        lab_id=lab_id,
        user=user,
        encoder_id=wanted.get("encoder"),
        options=options_of(user, lab_id, wanted),
        by_marks=wanted["judged"],
    )
    if isinstance(found, SimilarResult):
        return Response(similar_represent(found))
    response = job_accepted(found, request, roi=str(roi.pk))
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def options_of(user: User, lab_id: uuid.UUID, wanted: Mapping[str, Any]) -> SimilarOptions:
    """The options of a search, from the fields of ``SimilarQuerySerializer``.

    Raises:
        NotFoundError: the label is not of the lab that is searched.
    """
    label_id = wanted.get("label")
    if label_id and label_get(user, label_id).lab_id != lab_id:
        raise NotFoundError("There is no such label.")
    named = {name: wanted[name] for name in FILTER_TITLES if wanted.get(name)}
    case = CaseScope(wanted.get("case", ""))
    options: SimilarOptions = {
        "k": wanted["k"],
        "exclude_same_patient": wanted["exclude_same_patient"],
        "filters": Filters(label_id=label_id, case=case, **named),
        "by_case": wanted["by_case"],
        "with_facets": wanted["facets"],
        "liked": tuple(wanted.get("liked", ())),
        "unliked": tuple(wanted.get("unliked", ())),
    }
    if "expand" in wanted:
        options["expand"] = wanted["expand"]
    if wanted.get("diffuse") is not None:
        options["diffuse"] = wanted["diffuse"]
    return options
