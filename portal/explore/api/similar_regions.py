"""REST: similar regions of the same slide."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors.rois import roi_get
from portal.core.api.views import ApiView
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited
from portal.embeddings.api import RETRY_AFTER_S
from portal.embeddings.serializers import EmbeddingPendingSerializer
from portal.explore.selectors.similar_regions import SimilarRegions
from portal.explore.serializers.similar_regions import (
    SimilarRegionsParamsSerializer,
    SimilarRegionsSerializer,
)
from portal.explore.services.similar_regions import similar_regions_or_job
from portal.jobs.api import job_accepted
from portal.labs.models import TokenArea
from portal.labs.requests import user_of


@audited(GET=AuditRule("search.made", "roi", "roi_id", every_s=MINUTE_S))
class SimilarRegionsApi(ApiView):
    """Regions of a slide similar to one of its ROIs."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_similar_regions",
        parameters=[
            SimilarRegionsParamsSerializer,
            OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH),
        ],
        responses={
            200: SimilarRegionsSerializer,
            202: OpenApiResponse(
                EmbeddingPendingSerializer,
                description="The ROI is being embedded, or the tissue of its slide is being "
                "sampled. Ask again when `job` has ended; `Retry-After` says when to look.",
            ),
        },
        summary="Find similar regions of the slide that are not drawn on",
    )
    def get(self, request: Request, roi_id: uuid.UUID) -> Response:
        """Regions of the slide without ROIs that resemble the ROI; no ROI is created.

        400 `no-slide` for a video or a mosaic; 409 if the ROI has no vector.
        """
        user = user_of(request)
        roi = roi_get(user, roi_id, with_shared=False)
        serializer = SimilarRegionsParamsSerializer(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        set_audited_id(request, roi.pk)
        outcome = similar_regions_or_job(
            roi=roi, user=user, limit=serializer.validated_data["limit"]
        )
        if isinstance(outcome, SimilarRegions):
            return Response(SimilarRegionsSerializer(outcome).data)
        response = job_accepted(outcome, request, roi=str(roi.pk))
        response["Retry-After"] = str(RETRY_AFTER_S)
        return response
