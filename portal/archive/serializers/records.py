"""Cases, and the files they hold, as programs see them."""

from __future__ import annotations

from datetime import date
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.archive.models import (
    AgeBand,
    Case,
    CaseShare,
    ItemState,
    Modality,
    Sex,
    Slide,
    Video,
)
from portal.archive.services.cases import MAX_TAG_LENGTH, MAX_TAGS
from portal.archive.services.stains import STAIN_LONGEST

_LAB_ONLY = ("patient_key", "clinical_question", "notes")
"""Fields that a lab with which a case is shared gets empty."""


class CaseSerializer(serializers.ModelSerializer[Case]):
    """A case. ``lab`` may be left out by a person who may write in one lab only."""

    lab = serializers.UUIDField(source="lab_id", required=False)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=MAX_TAG_LENGTH), max_length=MAX_TAGS, required=False
    )
    age_band = serializers.ChoiceField(choices=AgeBand.choices, required=False)
    sex = serializers.ChoiceField(choices=Sex.choices, required=False)
    modality = serializers.ChoiceField(
        choices=Modality.choices,
        required=False,
        allow_blank=True,
        help_text="Of its first image, unless set; a change sets it for all images of the case",
    )
    slide_count = serializers.SerializerMethodField()
    video_count = serializers.SerializerMethodField()
    mosaic_count = serializers.SerializerMethodField()
    shared_until = serializers.SerializerMethodField()

    class Meta:
        model = Case
        fields = (
            "id",
            "lab",
            "accession",
            "patient_key",
            "age_band",
            "sex",
            "organ",
            "procedure",
            "diagnosis",
            "tags",
            "clinical_question",
            "notes",
            "modality",
            "is_modality_by_hand",
            "slide_count",
            "video_count",
            "mosaic_count",
            "shared_until",
            "created_at",
            "updated_at",
        )
        read_only_fields = ("is_modality_by_hand",)
        validators = ()  # uniqueness is answered by the service, as a conflict

    def get_slide_count(self, case: Case) -> int:
        """Slides and stills."""
        return int(getattr(case, "slide_count", 0))

    def get_video_count(self, case: Case) -> int:
        return int(getattr(case, "video_count", 0))

    def get_mosaic_count(self, case: Case) -> int:
        """Mosaics that are ready."""
        return int(getattr(case, "mosaic_count", 0))

    def get_shared_until(self, case: Case) -> date | None:
        """Last day (UTC) of the share for the reader; null in the reader's own lab."""
        share: CaseShare | None = self.context.get("share")
        return share.until if share else None

    def to_representation(self, case: Case) -> dict[str, Any]:
        """Omit pseudonym, clinical question and notes of a case that another lab shares."""
        data: dict[str, Any] = super().to_representation(case)
        return data | dict.fromkeys(_LAB_ONLY, "") if self.context.get("share") else data


class ItemErrorSerializer(serializers.Serializer[Any]):
    """Reason why an item could not be prepared."""

    code = serializers.CharField()
    message = serializers.CharField()


class _ItemSerializer(serializers.Serializer[Any]):
    """Fields shared by slides and videos."""

    id = serializers.UUIDField(read_only=True)
    case = serializers.UUIDField(source="case_id", read_only=True)
    name = serializers.CharField(read_only=True)
    state = serializers.ChoiceField(choices=ItemState.choices, read_only=True)
    error = serializers.SerializerMethodField()
    warnings = serializers.ListField(child=serializers.CharField(), read_only=True)
    canvas = serializers.UUIDField(source="canvas_id", read_only=True, allow_null=True)
    sha256 = serializers.CharField(source="asset.sha256", read_only=True)
    size_bytes = serializers.IntegerField(source="asset.size_bytes", read_only=True)
    removed = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField(read_only=True)
    updated_at = serializers.DateTimeField(read_only=True)

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_removed(self, item: Slide | Video) -> list[str]:
        """Names of the fields removed from the file because they may identify a person."""
        return list(item.asset.removed or [])

    @extend_schema_field(ItemErrorSerializer(allow_null=True))
    def get_error(self, item: Slide | Video) -> dict[str, str] | None:
        """Null unless the state is *failed*."""
        if item.state != ItemState.FAILED:
            return None
        return {"code": item.error_code, "message": item.error_message}


class SlideSerializer(_ItemSerializer):
    """A slide or still. ``properties`` holds allow-listed vendor metadata only."""

    vendor = serializers.CharField(read_only=True)
    objective_power = serializers.FloatField(read_only=True, allow_null=True)
    stain = serializers.CharField(read_only=True, help_text="Empty where nobody knows it")
    is_stain_by_hand = serializers.BooleanField(
        read_only=True, help_text="Set by a person, not read from the file"
    )
    properties = serializers.DictField(child=serializers.CharField(), read_only=True)


class StoredFramesSerializer(serializers.Serializer[Any]):
    """Frames as the file stores them, of a video; null until it is ready.

    The canvas has upright frames of square pixels, in a size of its own.
    """

    stored_width = serializers.IntegerField(
        source="display_geometry.stored_width_px", read_only=True, allow_null=True
    )
    stored_height = serializers.IntegerField(
        source="display_geometry.stored_height_px", read_only=True, allow_null=True
    )
    sample_aspect_ratio = serializers.CharField(
        source="display_geometry.sample_aspect_ratio",
        read_only=True,
        allow_null=True,
        help_text="Width to height of a stored pixel, such as 64:45",
    )
    is_mirrored = serializers.BooleanField(
        source="display_geometry.is_mirrored",
        read_only=True,
        allow_null=True,
        help_text="Shown mirrored left to right, before the rotation",
    )
    rotation_deg = serializers.IntegerField(
        source="display_geometry.rotation_deg",
        read_only=True,
        allow_null=True,
        help_text="Clockwise, from stored to displayed: 0, 90, 180 or 270",
    )


class VideoSerializer(StoredFramesSerializer, _ItemSerializer):
    codec = serializers.CharField(read_only=True)
    container = serializers.CharField(read_only=True)
    duration_s = serializers.FloatField(read_only=True)
    fps = serializers.FloatField(read_only=True)
    frame_count = serializers.IntegerField(read_only=True)
    time_base_s = serializers.FloatField(read_only=True)


class UploadTargetSerializer(serializers.Serializer[Any]):
    """Target of a file, required before the file is read."""

    case = serializers.UUIDField(help_text="The case that receives it; send it before the file")


class ItemNameSerializer(serializers.Serializer[Any]):
    """Another title."""

    name = serializers.CharField(max_length=200)


class SlideChangesSerializer(ItemNameSerializer):
    """Another title, another stain, or both."""

    name = serializers.CharField(max_length=200, required=False)
    stain = serializers.CharField(
        max_length=STAIN_LONGEST,
        required=False,
        allow_blank=True,
        help_text="A short term, as the lab's other slides write it; empty: not known",
    )


class ItemUploadSerializer(UploadTargetSerializer):
    """A file for a case, as multipart form."""

    file = serializers.FileField(help_text="The slide, image or video itself")
    name = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Name to show; if empty, the name of the file",
    )
