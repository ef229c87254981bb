"""Serializers of review."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework import serializers

from ml.types import JsonObject
from portal.annotations.models import ReviewState
from portal.annotations.serializers import INT32_MAX
from portal.review.models import COMMENT_MAX
from portal.review.services.verdicts import MAX_VERDICTS, RoiVerdict


class ThreadEntrySerializer(serializers.Serializer[Any]):
    """A step of review, or a comment."""

    id = serializers.UUIDField()
    kind = serializers.CharField(help_text="`comment`, or the state that the step led to")
    text = serializers.CharField(allow_blank=True)
    version = serializers.IntegerField(help_text="Version of the ROI when this was written")
    author = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField()
    mentions = serializers.ListField(
        child=serializers.CharField(),
        help_text="Members mentioned in the text, as written: `@` and a full name or an address",
    )


class CommentCreateSerializer(serializers.Serializer[Any]):
    """Text of a comment."""

    text = serializers.CharField(max_length=COMMENT_MAX)


class VersionedRoiSerializer(serializers.Serializer[Any]):
    """Id and reviewed version of an ROI."""

    id = serializers.UUIDField()
    version = serializers.IntegerField(min_value=1, max_value=INT32_MAX)


class ReviewSerializer(serializers.Serializer[Any]):
    """A review step for some ROIs."""

    state = serializers.ChoiceField(ReviewState.choices)
    comment = serializers.CharField(required=False, allow_blank=True, max_length=COMMENT_MAX)
    rois = VersionedRoiSerializer(many=True, help_text=f"1 to {MAX_VERDICTS}")


class VerdictSerializer(serializers.Serializer[Any]):
    """Result of reviewing one ROI."""

    id = serializers.UUIDField(source="roi_id")
    outcome = serializers.CharField(
        help_text="`done`, `unchanged`, or the code of a problem: `stale-version`, `not-submitted`,"
        " `own-roi`, `forbidden`, `not-found`"
    )
    detail = serializers.CharField(allow_blank=True)
    version = serializers.IntegerField(allow_null=True)


class ReviewedSerializer(serializers.Serializer[Any]):
    """Results of a review step."""

    results = VerdictSerializer(many=True)


class QueueQuerySerializer(serializers.Serializer[Any]):
    """Filters of the queue."""

    state = serializers.ChoiceField(ReviewState.choices, default=ReviewState.SUBMITTED)
    lab = serializers.UUIDField(required=False)
    canvas = serializers.UUIDField(required=False)
    label = serializers.UUIDField(required=False)  # type: ignore[assignment]
    person = serializers.UUIDField(required=False, help_text="Who drew it")
    case = serializers.CharField(required=False, help_text="Part of accession or diagnosis")
    since = serializers.DateField(required=False, help_text="Day of the last change (UTC)")
    until = serializers.DateField(required=False)


class QueuedSerializer(serializers.Serializer[Any]):
    """An ROI in the queue."""

    id = serializers.UUIDField()
    version = serializers.IntegerField()
    name = serializers.CharField()
    label = serializers.UUIDField(source="label_id", allow_null=True)  # type: ignore[assignment]
    label_name = serializers.CharField(source="label.name", default=None)
    review_state = serializers.ChoiceField(ReviewState.choices)
    canvas = serializers.UUIDField(source="canvas_id")
    canvas_name = serializers.CharField(source="canvas.name")
    accession = serializers.CharField(source="canvas.case.accession")
    created_by = serializers.SerializerMethodField()
    updated_at = serializers.DateTimeField()
    comment_count = serializers.IntegerField()

    def get_created_by(self, roi: Any) -> str | None:
        """Name of the author."""
        return str(roi.created_by) if roi.created_by else None


class ReviewRulesSerializer(serializers.Serializer[Any]):
    """Review settings of a lab."""

    lab = serializers.UUIDField(source="lab_id", read_only=True)
    may_judge_own = serializers.BooleanField(
        help_text="Whether reviewers may accept or reject what they drew or changed themselves"
    )


def verdicts_represent(verdicts: Iterable[RoiVerdict]) -> JsonObject:
    """Representation of the results in answers."""
    return {"results": VerdictSerializer(verdicts, many=True).data}
