"""REST: programs of a lab and their tokens, for its managers, by the services of the pages."""

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
from portal.labs import selectors, services
from portal.labs.api.people import LabFilter
from portal.labs.models import Membership, Role, TokenArea, TokenScope
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.rules import require_manager
from portal.labs.serializers import (
    ApiTokenSerializer,
    NewApiTokenSerializer,
    ProgramTokenCreateSerializer,
)


class ProgramSerializer(serializers.ModelSerializer[Membership]):
    """A program, its role in the lab, and its tokens that were not revoked."""

    lab = serializers.UUIDField(source="lab_id", read_only=True)
    name = serializers.CharField(source="user.full_name")
    role = serializers.ChoiceField(choices=Role.choices)
    tokens = ApiTokenSerializer(source="user.api_tokens", many=True)

    class Meta:
        model = Membership
        fields = ("id", "lab", "name", "role", "created_at", "tokens")


class ProgramCreateSerializer(serializers.Serializer[Any]):
    """What a new program needs."""

    lab = serializers.UUIDField(
        required=False, help_text="May be left out by managers of a single lab"
    )
    name = serializers.CharField(max_length=120)
    role = serializers.ChoiceField(choices=Role.choices, help_text="Any role but manager")


class ProgramViewSet(mixins.ListModelMixin, ApiViewSet[Membership]):
    """Programs of the labs that one manages: accounts without password and mailbox."""

    area = TokenArea.LAB
    serializer_class = ProgramSerializer
    filterset_class = LabFilter
    queryset = Membership.objects.none()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Membership]:
        """By lab and name."""
        return selectors.program_list(user_of(self.request))

    @extend_schema(summary="A program")
    def retrieve(self, request: Request, pk: str) -> Response:
        """With its tokens that were not revoked, without their secrets."""
        program = _program(request, uuid.UUID(pk))
        return Response(ProgramSerializer(self.get_queryset().get(pk=program.pk)).data)

    @extend_schema(
        request=ProgramCreateSerializer, responses={201: ProgramSerializer}, summary="Add a program"
    )
    def create(self, request: Request) -> Response:
        """It has no token yet: `POST /programs/{id}/tokens/` makes one."""
        sent = ProgramCreateSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        wanted, user = sent.validated_data, user_of(request)
        lab = selectors.lab_chosen(user, wanted.get("lab"), at_least=Role.MANAGER)
        made = services.program_create(lab, name=wanted["name"], role=Role(wanted["role"]), by=user)
        return Response(ProgramSerializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None}, summary="Remove a program")
    def destroy(self, request: Request, pk: str) -> Response:
        """Its tokens end; its work stays."""
        services.program_remove(_program(request, uuid.UUID(pk)), by=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ProgramTokensApi(ApiView):
    """The tokens of a program."""

    area = TokenArea.LAB

    @extend_schema(
        operation_id="programs_tokens_create",
        parameters=[OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)],
        request=ProgramTokenCreateSerializer,
        responses={201: NewApiTokenSerializer},
        summary="Create a token for a program",
    )
    def post(self, request: Request, id: uuid.UUID) -> Response:
        """With a session only. The secret is in this answer and nowhere else."""
        program = _program(request, id)
        sent = ProgramTokenCreateSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        wanted = sent.validated_data
        token, secret = services.program_token_create(
            program,
            scope=TokenScope(wanted["scope"]),
            areas=wanted.get("areas"),
            expires_in=timedelta(days=wanted["expires_in_days"]),
            by=user_of(request),
        )
        body = ApiTokenSerializer(token).data | {"secret": secret}
        return Response(body, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})

    @extend_schema(
        operation_id="programs_tokens_revoke",
        parameters=[OpenApiParameter("id", uuid.UUID, OpenApiParameter.PATH)],
        responses={204: OpenApiResponse(description="None of its tokens works any longer")},
        summary="Revoke all tokens of a program",
    )
    def delete(self, request: Request, id: uuid.UUID) -> Response:
        """At once; the program stays."""
        services.tokens_revoke_of(_program(request, id).user)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _program(request: Request, program_id: uuid.UUID) -> Membership:
    """One that the person manages."""
    program = selectors.program_get(user_of(request), membership_id=program_id)
    require_manager(user_of(request), program.lab)
    return program
