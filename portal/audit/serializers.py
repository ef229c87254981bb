"""Serializers of the API and the exports."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.audit.models import Outcome


class AuditEntrySerializer(serializers.Serializer[Any]):
    """An entry with its position in the lab's chain."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    lab = serializers.UUIDField()
    actor = serializers.UUIDField(allow_null=True, help_text="null if nobody was signed in")
    token = serializers.UUIDField(allow_null=True, help_text="The API token that was used")
    action = serializers.CharField()
    outcome = serializers.ChoiceField(Outcome.choices)
    kind = serializers.CharField(help_text="Kind of the object; empty if there is none")
    object = serializers.UUIDField(allow_null=True)
    case = serializers.UUIDField(allow_null=True)
    address = serializers.CharField()
    details = serializers.DictField()
    number = serializers.IntegerField(allow_null=True, help_text="null until it is sealed")
    previous = serializers.CharField(allow_null=True, help_text="Hash of the entry before")
    hash = serializers.CharField(allow_null=True)


class AuditHeadSerializer(serializers.Serializer[Any]):
    """End of a lab's chain, to be stored elsewhere."""

    lab = serializers.UUIDField(source="lab_id")
    number = serializers.IntegerField()
    hash = serializers.CharField()
