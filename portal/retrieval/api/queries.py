"""REST: what is searched with that is not an ROI."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiViewSet
from portal.core.http.acting import about
from portal.core.http.bodies import API_BODY_BYTES
from portal.jobs.api import job_accepted
from portal.labs.models import Role, TokenArea
from portal.labs.requests import user_of
from portal.labs.selectors import lab_chosen
from portal.retrieval import selectors, services
from portal.retrieval.api.search import ANSWERS, RETRY_AFTER_S, options_of
from portal.retrieval.models import Query, QuerySource
from portal.retrieval.serializers import (
    QueryAskSerializer,
    QuerySerializer,
    SimilarQuerySerializer,
    similar_represent,
)


class QueryViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Query]):
    """Queries of your labs: areas, frames, pictures, whole slides and examples."""

    area = TokenArea.SEARCH
    body_limit_bytes = API_BODY_BYTES + 4 * services.PICTURE_BYTES // 3  # a picture as base64
    serializer_class = QuerySerializer
    queryset = Query.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Query]:
        """The newest first."""
        return selectors.query_list(user_of(self.request))

    @extend_schema(
        request=QueryAskSerializer,
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

        `202` with the job where pixels have to be embedded first. Nothing is drawn: no ROI, no
        slide and no asset comes of it. Removed after 30 days.
        """
        user = user_of(request)
        asked = QueryAskSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        lab = None
        if asked.validated_data.get("source") == QuerySource.PICTURE:
            lab_id = asked.validated_data.get("lab")
            lab = lab_chosen(user, lab_id, at_least=Role.VIEWER)
        query = services.query_create(asked=asked.asked(lab), user=user)
        about(request, query.pk)
        shown = QuerySerializer(query, context={"request": request}).data
        job = selectors.query_job(query)
        return job_accepted(job, request, **shown) if job else Response(shown, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a query of yours, with its picture."""
        query = self.get_object()
        services.query_remove(query=query, user=user_of(request))
        about(request, query.lab_id)
        return Response(status=204)

    @extend_schema(
        operation_id="query_similar", parameters=[SimilarQuerySerializer], responses=ANSWERS
    )
    @action(detail=True, methods=["get"])
    def similar(self, request: Request, pk: str) -> Response:
        """The ROIs of the query's lab that are most similar to it; as `POST /search/`.

        `judged` and `encoder` apply to searches with ROIs; here they have no effect.
        """
        user, query = user_of(request), self.get_object()
        asked = SimilarQuerySerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        options = options_of(user, query.lab_id, asked.validated_data)
        found = services.similar_to_query(query=query, user=user, options=options)
        if isinstance(found, selectors.SimilarResult):
            return Response(similar_represent(found))
        response = job_accepted(found, request, query=str(query.pk))
        response["Retry-After"] = str(RETRY_AFTER_S)
        return response
