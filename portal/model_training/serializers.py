"""Serializers of learning from a lab's archive."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ml.types import JsonObject
from portal.archive.models import Modality
from portal.embeddings.serializers import EncoderSerializer
from portal.model_training.models import Learning, LearningMethod
from portal.model_training.services.learnings import (
    DEFAULT_HOURS,
    DEFAULT_STEPS,
    MAX_HOURS,
    MAX_STEPS,
    MIN_STEPS,
)

USES = (("no", "no"), ("preparing", "preparing"), ("yes", "yes"))


class LearningCreateSerializer(serializers.Serializer[Any]):
    """Request to learn from a lab's archive."""

    lab = serializers.UUIDField(required=False, help_text="Needed if you manage several labs")
    kind = serializers.ChoiceField(Modality.choices, default=Modality.HISTOLOGY)
    method = serializers.ChoiceField(
        LearningMethod.choices,
        default=LearningMethod.METRIC,
        help_text=(
            "metric: takes minutes, over the stored vectors; encoder: takes hours, from the pixels"
        ),
    )
    steps = serializers.IntegerField(
        min_value=MIN_STEPS,
        max_value=MAX_STEPS,
        default=DEFAULT_STEPS,
        help_text="Most steps of the training of an encoder; the encoder of endoscopy takes none",
    )
    hours = serializers.FloatField(
        min_value=0,
        max_value=MAX_HOURS,
        default=DEFAULT_HOURS,
        help_text="Hours after which the training of an encoder ends with what it has",
    )


class LearningMeasureSerializer(serializers.Serializer[Any]):
    """Measure over the held-out patients, each weighted equally."""

    name = serializers.CharField(
        help_text="map_at_10, precision_at_10, first_right or agreement (with judgements)"
    )
    regions = serializers.IntegerField()
    patients = serializers.IntegerField()
    old = serializers.FloatField()
    new = serializers.FloatField()
    gain = serializers.FloatField()
    low = serializers.FloatField(help_text="95 % interval of the gain, resampling patients")
    high = serializers.FloatField()


class LearningChangeSerializer(serializers.Serializer[Any]):
    """Average precision of a label's regions before and after."""

    label = serializers.CharField()  # type: ignore[assignment]
    regions = serializers.IntegerField()
    patients = serializers.IntegerField()
    old = serializers.FloatField()
    new = serializers.FloatField()
    better = serializers.IntegerField()
    worse = serializers.IntegerField()
    same = serializers.IntegerField()


class LearningExampleSerializer(serializers.Serializer[Any]):
    """Held-out region and its nearest of other patients, by ROI id."""

    roi = serializers.UUIDField()
    gain = serializers.FloatField()
    old = serializers.ListField(child=serializers.UUIDField())
    new = serializers.ListField(child=serializers.UUIDField())


class LearningResultSerializer(serializers.Serializer[Any]):
    """Data, protocol and measures."""

    regions = serializers.IntegerField()
    regions_most = serializers.IntegerField(
        help_text="At most this many are used, the newest first"
    )
    labelled = serializers.IntegerField()
    patients = serializers.IntegerField()
    judgements = serializers.IntegerField()
    labels = serializers.IntegerField(help_text="Labels that were learned from")
    learned_regions = serializers.IntegerField()
    learned_patients = serializers.IntegerField()
    test_patients = serializers.IntegerField(help_text="Patients")
    split = serializers.CharField(help_text="The rule by which patients are kept aside")
    rule = serializers.CharField(help_text="The rule by which it is better")
    chosen = serializers.CharField(help_text="identity if nothing helped")
    judges_by = serializers.CharField()
    measures = LearningMeasureSerializer(many=True)
    changes = LearningChangeSerializer(many=True)
    examples = LearningExampleSerializer(many=True)


class TrainingSummarySerializer(serializers.Serializer[Any]):
    """Summary of an encoder's training."""

    regions = serializers.IntegerField(help_text="The regions whose pixels it learned from")
    patients = serializers.IntegerField()
    device = serializers.CharField()
    steps = serializers.IntegerField(help_text="Steps taken; 0 if the scheme takes none")
    loss = serializers.ListField(child=serializers.FloatField(), help_text="At most 200 points")
    held_out = serializers.ListField(
        child=serializers.FloatField(), help_text="Like loss, for patients kept aside"
    )
    stopped_early = serializers.BooleanField(
        help_text="Whether the hours were over before the steps"
    )


class LearningSerializer(serializers.ModelSerializer[Learning]):
    """Metric or encoder learned, or being learned, from a lab's archive."""

    base = EncoderSerializer(read_only=True)
    compared_with = EncoderSerializer(
        read_only=True,
        allow_null=True,
        help_text="What the lab's searches used at that time: `old` in `result`",
    )
    encoder = EncoderSerializer(read_only=True, allow_null=True)
    result = serializers.SerializerMethodField()
    training = serializers.SerializerMethodField()
    use = serializers.ChoiceField(USES, read_only=True, help_text="Whether searches use it")

    class Meta:
        model = Learning
        fields = (
            *("id", "lab", "kind", "method", "steps", "hours", "created_at", "job", "base"),
            *("compared_with", "encoder", "is_better", "use", "result", "training"),
        )

    @extend_schema_field(LearningResultSerializer(allow_null=True))
    def get_result(self, learning: Learning) -> JsonObject | None:
        """Stored evaluation."""
        return learning.result

    @extend_schema_field(TrainingSummarySerializer(allow_null=True))
    def get_training(self, learning: Learning) -> JsonObject | None:
        """Training summary of an encoder, available after its evaluation."""
        return learning.training
