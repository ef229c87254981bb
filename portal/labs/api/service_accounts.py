"""REST: service accounts of a lab and their tokens, for its managers."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiView, ApiViewSet
from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.api.people import LabFilter
from portal.labs.models import Membership, Role, TokenArea, TokenScope
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.rules import require_manager
from portal.labs.serializers import (
    ApiTokenSerializer,
    NewApiTokenSerializer,
    ServiceAccountTokenCreateSerializer,
)
from portal.labs.services.service_accounts import (
    service_account_create,
    service_account_remove,
    service_account_token_create,
)
from portal.labs.services.tokens import tokens_revoke_of


class ServiceAccountSerializer(serializers.ModelSerializer[Membership]):
    """A service account, its role in the lab, and its tokens that were not revoked."""

    lab = serializers.UUIDField(source="lab_id", read_only=True)
    name = serializers.CharField(source="user.full_name")
    role = serializers.ChoiceField(choices=Role.choices)
    tokens = ApiTokenSerializer(source="user.api_tokens", many=True)

    class Meta:
        model = Membership
        fields = ("id", "lab", "name", "role", "created_at", "tokens")


class ServiceAccountCreateSerializer(serializers.Serializer[Any]):
    """Fields of a new service account."""

    lab = serializers.UUIDField(
        required=False, help_text="May be left out by managers of a single lab"
    )
    name = serializers.CharField(max_length=120)
    role = serializers.ChoiceField(choices=Role.choices, help_text="Any role but manager")


@not_audited("recorded by its events")
class ServiceAccountViewSet(mixins.ListModelMixin, ApiViewSet[Membership]):
    """Service accounts of the labs that the user manages."""

    area = TokenArea.LAB
    serializer_class = ServiceAccountSerializer
    filterset_class = LabFilter
    queryset = Membership.objects.none()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Membership]:
        """Service accounts by lab and name."""
        return selectors.service_account_list(user_of(self.request))

    @extend_schema(summary="A service account")
    def retrieve(self, request: Request, pk: str) -> Response:
        """A service account with its active tokens, without their secrets."""
        service_account = _service_account(request, uuid.UUID(pk))
        return Response(
            ServiceAccountSerializer(self.get_queryset().get(pk=service_account.pk)).data
        )

    @extend_schema(
        request=ServiceAccountCreateSerializer,
        responses={201: ServiceAccountSerializer},
        summary="Add a service account",
    )
    def create(self, request: Request) -> Response:
        """Create a service account without a token; `POST /service-accounts/{id}/tokens/` creates
        one.
        """
        serializer = ServiceAccountCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data, user = serializer.validated_data, user_of(request)
        lab = selectors.lab_chosen(user, data.get("lab"), at_least=Role.MANAGER)
        account = service_account_create(lab, name=data["name"], role=Role(data["role"]), by=user)
        return Response(ServiceAccountSerializer(account).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None}, summary="Remove a service account")
    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a service account and revoke its tokens; its work stays."""
        service_account_remove(_service_account(request, uuid.UUID(pk)), by=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


@not_audited("recorded by its events")
class ServiceAccountTokensApi(ApiView):
    """The tokens of a service account."""

    area = TokenArea.LAB

    @extend_schema(
        operation_id="service_accounts_tokens_create",
        parameters=[OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)],
        request=ServiceAccountTokenCreateSerializer,
        responses={201: NewApiTokenSerializer},
        summary="Create a token for a service account",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """Create a token. Requires a session; only this response contains the secret."""
        service_account = _service_account(request, id)
        serializer = ServiceAccountTokenCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        token, secret = service_account_token_create(
            service_account,
            scope=TokenScope(data["scope"]),
            areas=data.get("areas"),
            expires_in=timedelta(days=data["expires_in_days"]),
            by=user_of(request),
        )
        body = ApiTokenSerializer(token).data | {"secret": secret}
        return Response(body, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})

    @extend_schema(
        operation_id="service_accounts_tokens_revoke",
        parameters=[OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)],
        responses={204: OpenApiResponse(description="None of its tokens works any longer")},
        summary="Revoke all tokens of a service account",
    )
    def delete(self, request: Request, id: uuid.UUID) -> Response:
        """Revoke all tokens of a service account at once."""
        tokens_revoke_of(_service_account(request, id).user)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _service_account(request: Request, service_account_id: uuid.UUID) -> Membership:
    """Return a service account of a lab that the person manages."""
    service_account = selectors.service_account_get(
        user_of(request), membership_id=service_account_id
    )
    require_manager(user_of(request), service_account.lab)
    return service_account
