"""Follow-ups as programs see them."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ml.types import JsonObject
from portal.archive.models import ItemState
from portal.archive.serializers.records import ItemErrorSerializer
from portal.jobs.serializers import JobSerializer
from portal.mosaics.models import Followup, FollowupHit


class FollowupHitSerializer(serializers.Serializer[Any]):
    """A frame (or a window of a mosaic) that shows the place."""

    rank = serializers.IntegerField()
    index = serializers.IntegerField(allow_null=True, help_text="The frame; null on a mosaic")
    pts = serializers.IntegerField(allow_null=True)
    time_s = serializers.FloatField(allow_null=True)
    inliers = serializers.IntegerField(help_text="Matches that agree on one map")
    matches = serializers.IntegerField(help_text="Matches before verification")
    outline = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2),
        help_text="The place on the target, in its level-0 pixels",
    )
    picture_url = serializers.CharField(help_text="Both views with the matches drawn, JPEG")
    viewer_url = serializers.CharField()


class FollowupSerializer(serializers.Serializer[Any]):
    """A follow-up; ``results`` is empty once it is ready where the place was not found."""

    id = serializers.UUIDField()
    roi = serializers.UUIDField(source="roi_id")
    roi_version = serializers.IntegerField()
    target = serializers.UUIDField(source="target_id")
    state = serializers.ChoiceField(ItemState.choices)
    error = serializers.SerializerMethodField()
    searched_count = serializers.IntegerField(help_text="Frames or windows searched")
    seconds = serializers.FloatField()
    results = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()

    @extend_schema_field(ItemErrorSerializer(allow_null=True))
    def get_error(self, followup: Followup) -> dict[str, str] | None:
        """Null unless the state is *failed*."""
        if followup.state != ItemState.FAILED:
            return None
        return {"code": followup.error_code, "message": followup.error_message}

    @extend_schema_field(FollowupHitSerializer(many=True))
    def get_results(self, followup: Followup) -> list[JsonObject]:
        """Results ranked by certainty."""
        return [hit_represent(followup, hit) for hit in followup.result]


class FollowupAcceptedSerializer(FollowupSerializer):
    """A follow-up, with its job."""

    job = JobSerializer(allow_null=True)


class FollowupCreateSerializer(serializers.Serializer[Any]):
    """Place to find again, and the target to search."""

    roi = serializers.UUIDField(help_text="An ROI on a frame of a video, or on a mosaic")
    target = serializers.UUIDField(
        help_text="Canvas of another video or mosaic of the same patient"
    )


def hit_represent(followup: Followup, hit: FollowupHit) -> JsonObject:
    """A stored hit with its addresses."""
    viewer = reverse("archive:viewer", args=[followup.target_id])
    x, y = (sum(axis) / len(axis) for axis in zip(*hit["outline"], strict=True))
    at = "" if hit["pts"] is None else f"t={hit['pts']}&"
    picture = reverse("api:followup-picture", kwargs={"pk": followup.pk, "rank": hit["rank"]})
    return {
        **{name: value for name, value in hit.items() if name != "picture"},
        "picture_url": f"{picture}?v={followup.updated_at.timestamp():.0f}",
        "viewer_url": f"{viewer}?{at}x={x:.1f}&y={y:.1f}",
    }
