"""REST: the authenticated user and their tokens."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiView, ApiViewSet
from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.models import ApiToken, TokenScope
from portal.labs.requests import user_of
from portal.labs.serializers import (
    ApiTokenCreateSerializer,
    ApiTokenSerializer,
    MeSerializer,
    NewApiTokenSerializer,
)
from portal.labs.services import tokens as services


@not_audited("no data of patients")
class MeApi(ApiView):
    """The authenticated user."""

    any_area = True

    @extend_schema(operation_id="me", responses=MeSerializer, tags=["me"])
    def get(self, request: Request) -> Response:
        """The user of the session or token, with labs and roles."""
        body = MeSerializer(
            {
                "user": user_of(request),
                "memberships": selectors.memberships_of(user_of(request)),
                "token": request.auth if isinstance(request.auth, ApiToken) else None,
            }
        )
        return Response(body.data)


@not_audited("no data of patients")
@extend_schema(tags=["me"])
class ApiTokenViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    ApiViewSet[ApiToken],
):
    """The user's own tokens. Requires a session: a token cannot manage tokens."""

    serializer_class = ApiTokenSerializer
    queryset = ApiToken.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[ApiToken]:
        """Tokens of the user."""
        return selectors.tokens_of(user_of(self.request))

    @extend_schema(request=ApiTokenCreateSerializer, responses={201: NewApiTokenSerializer})
    def create(self, request: Request) -> Response:
        """Create a token. Only this response contains the secret."""
        serializer = ApiTokenCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        token, secret = services.token_create(
            user_of(request),
            name=serializer.validated_data["name"],
            scope=TokenScope(serializer.validated_data["scope"]),
            areas=serializer.validated_data.get("areas"),
            lab=selectors.lab_of_id(user_of(request), serializer.validated_data.get("lab")),
            expires_in=timedelta(days=serializer.validated_data["expires_in_days"]),
        )
        body = ApiTokenSerializer(token).data | {"secret": secret}
        return Response(body, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})

    @extend_schema(responses={204: OpenApiResponse(description="The token no longer works")})
    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke a token; it stays listed with the time of revocation."""
        services.token_revoke(self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)
