"""REST: why a search finds a region."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors import roi_get
from portal.core.api.views import ApiView
from portal.core.errors import NotFoundError
from portal.core.http.acting import about
from portal.jobs.api import job_accepted
from portal.jobs.models import Job
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.retrieval import selectors, services
from portal.retrieval.api.search import RETRY_AFTER_S, EmbeddingPendingSerializer
from portal.retrieval.models import Encoder
from portal.retrieval.selectors import MatchFound
from portal.retrieval.serializers import MatchSerializer, match_represent

_ANSWERS = {
    200: MatchSerializer,
    202: OpenApiResponse(
        EmbeddingPendingSerializer,
        description="`job` is working it out; ask again when it has succeeded.",
    ),
}
_OTHER_ID = OpenApiParameter("other_id", uuid.UUID, OpenApiParameter.PATH, description="An ROI")


class RoiWhyApi(ApiView):
    """Why a search with an ROI finds another."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_why",
        parameters=[OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH), _OTHER_ID],
        responses=_ANSWERS,
    )
    def get(self, request: Request, roi_id: uuid.UUID, other_id: uuid.UUID) -> Response:
        """The patches of both that match best, or their key points; worked out once, by a job.

        `409` where the ROI has no vector yet, or the last attempt failed.
        """
        user = user_of(request)
        roi, lab_id = selectors.roi_to_search(user, roi_id)
        other = roi_get(user, other_id, with_shared=False)
        if roi.deleted_at or other.deleted_at:
            raise NotFoundError("This ROI was deleted.")
        about(request, roi.pk)
        found = services.roi_match_explain(roi=roi, other=other, lab_id=lab_id, user=user)
        return _answer(request, found, selectors.encoder_for(roi))


class QueryWhyApi(ApiView):
    """Why a query finds an ROI."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="query_why",
        parameters=[OpenApiParameter("query_id", uuid.UUID, OpenApiParameter.PATH), _OTHER_ID],
        responses=_ANSWERS,
    )
    def get(self, request: Request, query_id: uuid.UUID, other_id: uuid.UUID) -> Response:
        """As `GET /rois/{roi_id}/similar/{other_id}/`, of a query that has pixels of its own."""
        user = user_of(request)
        query = selectors.query_get(user, query_id)
        other = roi_get(user, other_id, with_shared=False)
        about(request, query.pk)
        found = services.query_match_explain(query=query, other=other, user=user)
        return _answer(request, found, selectors.encoder_of_query(query))


def _answer(request: Request, found: MatchFound | Job, encoder: Encoder | None) -> Response:
    if isinstance(found, MatchFound):
        return Response(match_represent(found, encoder))
    response = job_accepted(found, request, explained=False)
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response
