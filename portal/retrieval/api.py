"""REST: encoders, and the search for similar ROIs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.annotations.selectors import label_get, roi_get
from portal.core.errors import NotFoundError
from portal.core.http.acting import about
from portal.jobs.api import job_accepted
from portal.jobs.serializers import JobSerializer
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.retrieval import services
from portal.retrieval.models import Encoder
from portal.retrieval.selectors import SimilarFilters, SimilarResult
from portal.retrieval.serializers import (
    EncoderSerializer,
    SearchSerializer,
    SimilarQuerySerializer,
    SimilarSerializer,
    similar_represent,
)

RETRY_AFTER_S = 2  # an ROI is embedded in about that time


class EmbeddingPendingSerializer(serializers.Serializer[Any]):
    """The ROI is being embedded; ask again once the job has succeeded."""

    job = JobSerializer()


_ANSWERS = {
    200: SimilarSerializer,
    202: OpenApiResponse(
        EmbeddingPendingSerializer,
        description=(
            "The ROI has no vector of its present outline yet. `job` is making it (it is "
            "submitted where there was none); ask again when it has succeeded. `Retry-After` "
            "says when to look."
        ),
    ),
}


class EncoderViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Encoder]
):
    """Encoders that have embedded something, the default first."""

    area = TokenArea.SEARCH
    serializer_class = EncoderSerializer
    queryset = Encoder.objects.all()
    lookup_value_converter = "uuid"


class SearchApi(APIView):
    """Similar ROIs."""

    area = TokenArea.SEARCH
    reads_by_post = True  # a read-only token may POST it

    @extend_schema(operation_id="search", request=SearchSerializer, responses=_ANSWERS)
    def post(self, request: Request) -> Response:
        """Search the ROIs of the ROI's lab for those most similar to it.

        The newest saves take part: an ROI is found from the moment its embedding is written, and
        no longer from the moment it is deleted or redrawn. `409` where the ROI is deleted or
        could not be embedded.
        """
        asked = SearchSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        return _answer(request, wanted["roi"], wanted | wanted.get("filters", {}))


class RoiSimilarApi(APIView):
    """The same search by GET."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_similar",
        parameters=[
            SimilarQuerySerializer,
            OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH),
        ],
        responses=_ANSWERS,
    )
    def get(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Similar ROIs of one ROI; see `POST /search/`."""
        asked = SimilarQuerySerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        return _answer(request, roi_id, asked.validated_data)


def _answer(request: Request, roi_id: uuid.UUID, wanted: Mapping[str, Any]) -> Response:
    user = user_of(request)
    roi = roi_get(user, roi_id, with_shared=False)  # a search looks into the whole lab of its ROI
    about(request, roi.pk)
    label_id = wanted.get("label")
    if label_id and label_get(user, label_id).lab_id != roi.lab_id:
        raise NotFoundError("There is no such label.")
    filters: SimilarFilters = {
        "k": wanted["k"],
        "exclude_same_patient": wanted["exclude_same_patient"],
        "organ": wanted.get("organ", ""),
        "label_id": label_id,
        "kind": wanted.get("kind", ""),
    }
    if "expand" in wanted:
        filters["expand"] = wanted["expand"]
    found = services.similar_or_embed(
        roi=roi, user=user, encoder_id=wanted.get("encoder"), filters=filters
    )
    if isinstance(found, SimilarResult):
        return Response(similar_represent(found))
    response = job_accepted(found, request, roi=str(roi.pk))
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


router_entries = [("encoders", EncoderViewSet, "encoder")]
urlpatterns = [
    path("search/", SearchApi.as_view(), name="search"),
    path("rois/<uuid:roi_id>/similar/", RoiSimilarApi.as_view(), name="roi-similar"),
]
