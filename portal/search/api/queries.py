"""REST: queries other than ROIs."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiViewSet
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited
from portal.core.http.bodies import API_BODY_BYTES
from portal.embeddings.api import RETRY_AFTER_S
from portal.jobs.api import job_accepted
from portal.labs.models import Role, TokenArea
from portal.labs.requests import user_of
from portal.labs.selectors import lab_chosen
from portal.search.api.similar_cases import ANSWERS, options_of
from portal.search.models import Query, QuerySource
from portal.search.selectors.queries import query_job, query_list
from portal.search.selectors.similar_cases import SimilarResult
from portal.search.serializers.queries import QueryCreateSerializer, QuerySerializer
from portal.search.serializers.requests import SimilarQuerySerializer
from portal.search.serializers.results import similar_represent
from portal.search.services.queries import PICTURE_BYTES, query_create, query_remove
from portal.search.services.similar_cases import query_search


@audited(
    list=AuditRule("search.listed", every_s=HOUR_S),
    create=AuditRule("search.requested", "query"),
    retrieve=AuditRule("search.made", "query", "pk", every_s=MINUTE_S),
    destroy=AuditRule("search.removed", "lab"),
    similar=AuditRule("search.made", "query", "pk"),
)
class QueryViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Query]):
    """Queries of your labs: areas, frames, pictures, whole slides and examples."""

    area = TokenArea.SEARCH
    body_limit_bytes = API_BODY_BYTES + 4 * PICTURE_BYTES // 3  # a picture as base64
    serializer_class = QuerySerializer
    queryset = Query.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Query]:
        """Newest first."""
        return query_list(user_of(self.request))

    @extend_schema(
        request=QueryCreateSerializer,
        responses={
            201: QuerySerializer,
            202: OpenApiResponse(
                QuerySerializer,
                description="Its pixels are being embedded; `Location` names the job",
            ),
        },
    )
    def create(self, request: Request) -> Response:
        """Search with something other than an ROI, then `GET /queries/{id}/similar/`.

        `202` with the job if pixels have to be embedded first. No ROI, slide or asset is created.
        Removed after 30 days.
        """
        user = user_of(request)
        serializer = QueryCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        lab = None
        if serializer.validated_data.get("source") == QuerySource.PICTURE:
            lab_id = serializer.validated_data.get("lab")
            lab = lab_chosen(user, lab_id, at_least=Role.VIEWER)
        query = query_create(data=serializer.query_data(lab), user=user)
        set_audited_id(request, query.pk)
        data = QuerySerializer(query, context={"request": request}).data
        job = query_job(query)
        return job_accepted(job, request, **data) if job else Response(data, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a query of the user, with its picture."""
        query = self.get_object()
        query_remove(query=query, user=user_of(request))
        set_audited_id(request, query.lab_id)
        return Response(status=204)

    @extend_schema(
        operation_id="query_similar", parameters=[SimilarQuerySerializer], responses=ANSWERS
    )
    @action(detail=True, methods=["get"])
    def similar(self, request: Request, pk: str) -> Response:
        """ROIs of the query's lab that are most similar to it, as `POST /search/`.

        `judged` and `encoder` apply to searches with ROIs; here they have no effect.
        """
        user, query = user_of(request), self.get_object()
        serializer = SimilarQuerySerializer(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        options = options_of(user, query.lab_id, serializer.validated_data)
        outcome = query_search(query=query, user=user, options=options)
        if isinstance(outcome, SimilarResult):
            return Response(similar_represent(outcome))
        response = job_accepted(outcome, request, query=str(query.pk))
        response["Retry-After"] = str(RETRY_AFTER_S)
        return response
