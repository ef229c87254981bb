"""REST: explanations of matches."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.annotations.selectors.rois import roi_get
from portal.core.api.views import ApiView
from portal.core.errors import NotFoundError
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited
from portal.embeddings.api import RETRY_AFTER_S
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.encoders import encoder_for
from portal.embeddings.serializers import EmbeddingPendingSerializer
from portal.jobs.api import job_accepted
from portal.jobs.models import Job
from portal.labs.models import TokenArea
from portal.labs.requests import user_of
from portal.search.selectors.explanations import MatchExplanation
from portal.search.selectors.queries import encoder_of_query, query_get
from portal.search.selectors.similar_cases import roi_to_search
from portal.search.serializers.explanations import MatchSerializer, match_represent
from portal.search.services.explanations import query_match_explain, roi_match_explain

_ANSWERS = {
    200: MatchSerializer,
    202: OpenApiResponse(
        EmbeddingPendingSerializer,
        description="`job` is working it out; ask again when it has succeeded.",
    ),
}
_OTHER_ID = OpenApiParameter("other_id", uuid.UUID, OpenApiParameter.PATH, description="An ROI")


@audited(GET=AuditRule("search.explained", "roi", "roi_id", every_s=MINUTE_S))
class RoiExplanationApi(ApiView):
    """Explains why a search with an ROI finds another."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="roi_explanation",
        parameters=[OpenApiParameter("roi_id", uuid.UUID, OpenApiParameter.PATH), _OTHER_ID],
        responses=_ANSWERS,
    )
    def get(self, request: Request, roi_id: uuid.UUID, other_id: uuid.UUID) -> Response:
        """Best matching patches or key points of two ROIs, computed once by a job.

        `409` if the ROI has no vector yet, or the last attempt failed.
        """
        user = user_of(request)
        roi, lab_id = roi_to_search(user, roi_id)
        other = roi_get(user, other_id, with_shared=False)
        if roi.deleted_at or other.deleted_at:
            raise NotFoundError("This region was deleted.")
        set_audited_id(request, roi.pk)
        outcome = roi_match_explain(roi=roi, other=other, lab_id=lab_id, user=user)
        return _answer(request, outcome, encoder_for(roi))


@audited(GET=AuditRule("search.explained", "query", "query_id", every_s=MINUTE_S))
class QueryExplanationApi(ApiView):
    """Explains why a query finds an ROI."""

    area = TokenArea.SEARCH

    @extend_schema(
        operation_id="query_explanation",
        parameters=[OpenApiParameter("query_id", uuid.UUID, OpenApiParameter.PATH), _OTHER_ID],
        responses=_ANSWERS,
    )
    def get(self, request: Request, query_id: uuid.UUID, other_id: uuid.UUID) -> Response:
        """Explain why a query with pixels found a region, like
        `GET /rois/{roi_id}/similar/{other_id}/`."""
        user = user_of(request)
        query = query_get(user, query_id)
        other = roi_get(user, other_id, with_shared=False)
        set_audited_id(request, query.pk)
        outcome = query_match_explain(query=query, other=other, user=user)
        return _answer(request, outcome, encoder_of_query(query))


def _answer(request: Request, outcome: MatchExplanation | Job, encoder: Encoder | None) -> Response:
    if isinstance(outcome, MatchExplanation):
        return Response(match_represent(outcome, encoder))
    response = job_accepted(outcome, request, explained=False)
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response
