"""The inbox as the API shows it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ml.types import JsonObject
from portal.inbox.models import MailChoice, Notification, NotificationKind
from portal.inbox.selectors import inbox_entry


class NotificationSerializer(serializers.Serializer[Any]):
    """A notification with the ids of its subject."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(NotificationKind.choices)
    title = serializers.CharField(help_text="Sentence without the names of cases and images")
    place = serializers.CharField(
        allow_blank=True, help_text="Accession number and name of the image or file"
    )
    text = serializers.CharField(allow_blank=True, help_text="Comment, reason or error")
    url = serializers.CharField(help_text="Path of the page of its subject")
    actor = serializers.CharField(allow_null=True, help_text="Who caused it; null: the portal")
    lab = serializers.UUIDField()
    roi = serializers.UUIDField(allow_null=True)
    mosaic = serializers.UUIDField(allow_null=True)
    roi_import = serializers.UUIDField(allow_null=True)
    upload = serializers.UUIDField(allow_null=True)
    assignment = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    read_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, instance: Notification) -> JsonObject:
        """Representation of a row of ``notification_list``."""
        entry = inbox_entry(instance)
        subjects = ("roi", "mosaic", "roi_import", "upload", "assignment")
        values: JsonObject = {
            "id": instance.pk,
            "kind": instance.kind,
            "title": entry.title,
            "place": entry.place,
            "text": entry.text,
            "url": entry.url,
            "actor": str(instance.actor) if instance.actor else None,
            "lab": instance.lab_id,
            **{name: getattr(instance, f"{name}_id") for name in subjects},
            "created_at": instance.created_at,
            "read_at": instance.read_at,
        }
        return {
            name: None if value is None else self.fields[name].to_representation(value)
            for name, value in values.items()
        }


class ReadRequestSerializer(serializers.Serializer[Any]):
    """Notifications to mark as read."""

    ids = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=500, help_text="All if left out"
    )


class CountSerializer(serializers.Serializer[Any]):
    """A number of notifications."""

    count = serializers.IntegerField()


class UnreadSerializer(serializers.Serializer[Any]):
    """Unread notifications of the user."""

    count = serializers.IntegerField(help_text="At most 100")


class PreferencesSerializer(serializers.Serializer[Any]):
    """Notification preferences of the user."""

    mail = serializers.ChoiceField(MailChoice.choices)
    mail_works = serializers.BooleanField(
        read_only=True, help_text="Whether this installation sends mail"
    )
