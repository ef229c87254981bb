"""REST: members of labs, and invitations."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.urls import reverse
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.api.views import ApiViewSet
from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.models import Delivery, Invitation, Membership, Role, TokenArea
from portal.labs.requests import UUID_REGEX, user_of
from portal.labs.serializers import UserSerializer
from portal.labs.services.invitations import (
    invitation_create,
    invitation_deliver,
    invitation_renew,
    invitation_revoke,
)
from portal.labs.services.members import member_remove, member_set_role


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A person's role in a lab."""

    user = UserSerializer(read_only=True)
    lab = serializers.UUIDField(source="lab_id", read_only=True)
    role = serializers.ChoiceField(choices=Role.choices)

    class Meta:
        model = Membership
        fields = ("id", "lab", "user", "role", "created_at")


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An open invitation, without its link."""

    lab = serializers.UUIDField(source="lab_id", read_only=True)
    role = serializers.ChoiceField(choices=Role.choices)
    delivery = serializers.ChoiceField(choices=Delivery.choices)
    has_expired = serializers.BooleanField(read_only=True)

    class Meta:
        model = Invitation
        fields: tuple[str, ...] = (
            "id",
            "lab",
            "email",
            "full_name",
            "role",
            "delivery",
            "created_at",
            "expires_at",
            "has_expired",
        )


class InvitationSentSerializer(InvitationSerializer):
    """An invitation; with its link if no mail was sent. The link is shown only once."""

    link = serializers.CharField(allow_null=True)

    class Meta(InvitationSerializer.Meta):
        fields = (*InvitationSerializer.Meta.fields, "link")


class InvitationCreateSerializer(serializers.Serializer[Any]):
    """Address and role of a new invitation."""

    lab = serializers.UUIDField(
        required=False, help_text="May be left out by managers of a single lab"
    )
    email = serializers.EmailField()
    full_name = serializers.CharField(required=False, allow_blank=True, max_length=120)
    role = serializers.ChoiceField(choices=Role.choices, default=Role.ANNOTATOR)


class LabFilter(filters.FilterSet):
    """Query parameter: the lab."""

    lab = filters.UUIDFilter(field_name="lab_id")


@not_audited("recorded by its events")
class MemberViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet[Membership]):
    """Members of the user's labs. Managers change roles and end memberships."""

    area = TokenArea.LAB
    if_match: ClassVar = {"PATCH": False, "DELETE": False}
    serializer_class = MemberSerializer
    filterset_class = LabFilter
    queryset = Membership.objects.none()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Membership]:
        """Members of the user's labs, without service accounts."""
        return selectors.member_list(user_of(self.request))

    @extend_schema(summary="Change a role")
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the role of a member. 409 if the lab would be left without a manager."""
        membership = self.get_object()
        serializer = self.get_serializer(membership, data=request.data)
        serializer.is_valid(raise_exception=True)
        role = Role(serializer.validated_data["role"])
        changed = member_set_role(membership, role=role, by=user_of(request))
        return Response(self.get_serializer(changed).data)

    @extend_schema(responses={204: None}, summary="Remove a member")
    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a member and revoke their tokens; their work stays. 409 for the last manager."""
        member_remove(self.get_object(), by=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


@not_audited("recorded by its events")
class InvitationViewSet(mixins.ListModelMixin, ApiViewSet[Invitation]):
    """Open invitations to the labs that the user manages."""

    area = TokenArea.LAB
    holds_transaction = False  # mail is sent
    serializer_class = InvitationSerializer
    filterset_class = LabFilter
    queryset = Invitation.objects.none()
    lookup_value_regex = UUID_REGEX

    def get_queryset(self) -> QuerySet[Invitation]:
        """Open invitations, newest first, expired ones included."""
        return selectors.invitation_list(user_of(self.request))

    @extend_schema(
        request=InvitationCreateSerializer,
        responses={201: InvitationSentSerializer},
        summary="Invite a person",
    )
    def create(self, request: Request) -> Response:
        """Send an invitation by mail; if mail is off, the response has the `link` to pass on."""
        serializer = InvitationCreateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data, user = serializer.validated_data, user_of(request)
        invitation, secret = invitation_create(
            selectors.lab_chosen(user, data.get("lab"), at_least=Role.MANAGER),
            email=data["email"],
            role=Role(data["role"]),
            by=user,
            full_name=data.get("full_name", ""),
        )
        return _invitation_response(request, invitation, secret, code=status.HTTP_201_CREATED)

    @extend_schema(
        request=None, responses={200: InvitationSentSerializer}, summary="Send a new link"
    )
    @action(detail=True, methods=["post"])
    def renew(self, request: Request, pk: str) -> Response:
        """Send a new link; the previous one is invalid from now on."""
        invitation = selectors.invitation_get(user_of(request), invitation_id=uuid.UUID(pk))
        secret = invitation_renew(invitation, by=user_of(request))
        return _invitation_response(request, invitation, secret, code=status.HTTP_200_OK)

    @extend_schema(responses={204: None}, summary="Revoke an invitation")
    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke an invitation and its link; 409 if it has already ended."""
        invitation = selectors.invitation_get(user_of(request), invitation_id=uuid.UUID(pk))
        invitation_revoke(invitation, by=user_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _invitation_response(
    request: Request, invitation: Invitation, secret: str, *, code: int
) -> Response:
    path = reverse("labs:invitation_open", args=[secret])
    link = request.build_absolute_uri(path)
    is_mailed = invitation_deliver(invitation, link=link) == Delivery.MAIL
    invitation.refresh_from_db()
    body = InvitationSerializer(invitation).data | {"link": None if is_mailed else link}
    return Response(body, status=code, headers={"Cache-Control": "no-store"})
