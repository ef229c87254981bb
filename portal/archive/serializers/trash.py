"""Serializers of the trash."""

from __future__ import annotations

from rest_framework import serializers

from portal.archive.models import TrashKind
from portal.archive.selectors.trash import TrashRow


class TrashEntrySerializer(serializers.Serializer[TrashRow]):
    id = serializers.UUIDField(source="entry.pk")
    lab = serializers.UUIDField(source="entry.lab_id")
    kind = serializers.ChoiceField(source="entry.kind", choices=TrashKind.choices)
    target = serializers.UUIDField(source="entry.target_id")
    name = serializers.CharField(source="entry.name")
    case = serializers.UUIDField(source="entry.case_id")
    accession = serializers.CharField()
    holds = serializers.CharField(help_text="What was deleted with it: `2 slides, 14 regions`")
    deleted_at = serializers.DateTimeField(source="entry.created_at")
    deleted_by = serializers.CharField(source="entry.deleted_by.email", default=None)
    purge_at = serializers.DateTimeField(help_text="When it is deleted for good")
