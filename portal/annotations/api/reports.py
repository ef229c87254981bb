"""Serializers of import reports."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class ImportItemSerializer(serializers.Serializer[Any]):
    """Result of one feature."""

    index = serializers.IntegerField()
    status = serializers.ChoiceField(["created", "updated", "restored", "unchanged", "refused"])
    roi = serializers.UUIDField(
        source="roi_id", allow_null=True, help_text="null for a refused feature and for an event"
    )
    shape = serializers.CharField(help_text="Its kind, name and class")
    notes = serializers.ListField(child=serializers.CharField())
    reason = serializers.CharField(help_text="Why it was refused; begins with the shape")


class ImportGroupSerializer(serializers.Serializer[Any]):
    """Features with the same reason, except for numbers."""

    status = serializers.ChoiceField(["refused", "repaired"])
    reason = serializers.CharField(help_text="The reason given for the first of them")
    count = serializers.IntegerField()
    first = serializers.ListField(
        child=serializers.IntegerField(), help_text="Positions of the first few, counted from 0"
    )
    shapes = serializers.ListField(
        child=serializers.CharField(), help_text="Kind, name and class of the first few"
    )


class ImportClassSerializer(serializers.Serializer[Any]):
    """A class of the document, and what its ROIs get."""

    name = serializers.CharField()
    color = serializers.CharField(allow_null=True)
    count = serializers.IntegerField()
    outcome = serializers.ChoiceField(["known", "mapped", "created", "none", "refused"])
    label = serializers.UUIDField(  # type: ignore[assignment]
        source="label_id", allow_null=True, help_text="null if there is none, or none yet"
    )
    label_name = serializers.CharField()
    problem = serializers.CharField(help_text="Why it was refused")


class ImportReportSerializer(serializers.Serializer[Any]):
    """Report of an import or of its preview; every feature is counted."""

    total = serializers.IntegerField()
    created = serializers.IntegerField()
    updated = serializers.IntegerField()
    restored = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    refused = serializers.IntegerField()
    events = serializers.IntegerField(
        help_text="Events of a video among those created, updated and restored"
    )
    repaired = serializers.IntegerField(help_text="Outlines that were repaired or clipped")
    format = serializers.CharField(help_text="The format that it was read as; `mixed` for several")
    image_decided = serializers.CharField(
        help_text=(
            "Of a document of several images, or an archive of several documents: which was read, "
            "and by what"
        )
    )
    labels_created = serializers.ListField(child=serializers.CharField())
    classes = ImportClassSerializer(many=True)
    groups = ImportGroupSerializer(many=True, help_text="All reasons and repairs with their counts")
    id = serializers.UUIDField(
        source="import_id",
        allow_null=True,
        help_text="POST /roi-imports/{id}/undo/ undoes it; null if nothing was changed",
    )
    is_preview = serializers.BooleanField(help_text="Nothing was written")
    items = ImportItemSerializer(
        many=True,
        help_text=(
            "Every feature; if there are more than 2,000, the refused and repaired ones, at most "
            "2,000"
        ),
    )


class ImportUndoneSerializer(serializers.Serializer[Any]):
    """Number of ROIs and events per result of an undone import."""

    removed = serializers.IntegerField(help_text="Deleted again")
    reverted = serializers.IntegerField(help_text="Restored as they were before")
    skipped = serializers.IntegerField(
        help_text="Left as they are, because somebody changed them since"
    )
