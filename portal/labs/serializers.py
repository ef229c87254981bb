"""Serializers of people, labs and tokens."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.labs.models import ApiToken, Lab, Membership, Role, TokenArea, TokenScope, User
from portal.labs.services import tokens as services

TOKEN_FIELDS = (
    "id",
    "name",
    "prefix",
    "scope",
    "areas",
    "lab",
    "created_at",
    "expires_at",
    "last_used_at",
    "revoked_at",
    "is_live",
)


class LabSerializer(serializers.ModelSerializer[Lab]):
    class Meta:
        model = Lab
        fields = ("id", "name", "slug")


class MembershipSerializer(serializers.ModelSerializer[Membership]):
    """The user's role in a lab."""

    lab = LabSerializer()
    role = serializers.ChoiceField(choices=Role.choices)

    class Meta:
        model = Membership
        fields = ("lab", "role")


class UserSerializer(serializers.ModelSerializer[User]):
    """A person."""

    class Meta:
        model = User
        fields = ("id", "email", "full_name")


class ApiTokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token, without its secret."""

    scope = serializers.ChoiceField(choices=TokenScope.choices)
    areas = serializers.DictField(
        child=serializers.ChoiceField(choices=TokenScope.choices),
        help_text=(
            "Areas, each with what the token may do there; if empty, `scope` holds everywhere"
        ),
    )
    is_live = serializers.BooleanField(read_only=True)

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = TOKEN_FIELDS
        read_only_fields = TOKEN_FIELDS


class MeSerializer(serializers.Serializer[Any]):
    """The authenticated user, their roles, and the token in use."""

    user = UserSerializer()
    memberships = MembershipSerializer(many=True)
    token = ApiTokenSerializer(
        allow_null=True, help_text="null if the request comes from a session"
    )


class ServiceAccountTokenCreateSerializer(serializers.Serializer[Any]):
    """Fields of a new token of a service account, which is limited to its lab."""

    scope = serializers.ChoiceField(choices=TokenScope.choices, default=TokenScope.READ)
    areas = serializers.DictField(
        child=serializers.ChoiceField(choices=TokenScope.choices),
        required=False,
        help_text=f"Limits it to these areas: {', '.join(TokenArea.values)}; all if left out",
    )
    expires_in_days = serializers.IntegerField(
        min_value=1, max_value=services.LONGEST_LIFE.days, default=90
    )


class ApiTokenCreateSerializer(ServiceAccountTokenCreateSerializer):
    """Fields of a new token."""

    name = serializers.CharField(max_length=80)
    lab = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="The only lab that it reaches; if left out, all of yours",
    )


class NewApiTokenSerializer(ApiTokenSerializer):
    """A token with its secret, which is shown only once."""

    secret = serializers.CharField(read_only=True)

    class Meta(ApiTokenSerializer.Meta):
        fields = (*TOKEN_FIELDS, "secret")
