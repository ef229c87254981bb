"""REST: where else on its slide something like an ROI is."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors import roi_get
from portal.core.api.views import ApiView
from portal.core.http.acting import about
from portal.jobs.api import job_accepted
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.retrieval import services
from portal.retrieval.api.search import RETRY_AFTER_S, EmbeddingPendingSerializer
from portal.retrieval.selectors import PlacesFound
from portal.retrieval.serializers import PlacesAskedSerializer, PlacesSerializer


class RoiPlacesApi(ApiView):
    """Places like an ROI on its own slide."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_places",
        parameters=[
            PlacesAskedSerializer,
            OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH),
        ],
        responses={
            200: PlacesSerializer,
            202: OpenApiResponse(
                EmbeddingPendingSerializer,
                description="The ROI is being embedded, or the tissue of its slide is being "
                "sampled. Ask again when `job` has ended; `Retry-After` says when to look.",
            ),
        },
        summary="Find places on the slide that look like an ROI and are not drawn on",
    )
    def get(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Nothing is drawn. 400 `no-slide`: a video or a mosaic; 409: nothing to search with."""
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        asked = PlacesAskedSerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        about(request, roi.pk)
        found = services.places_or_job(roi=roi, user=user, limit=asked.validated_data["limit"])
        if isinstance(found, PlacesFound):
            return Response(PlacesSerializer(found).data)
        response = job_accepted(found, request, roi=str(roi.pk))
        response["Retry-After"] = str(RETRY_AFTER_S)
        return response
