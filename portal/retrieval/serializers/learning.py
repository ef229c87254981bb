"""Metrics learned from a lab's archive as the API shows them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.retrieval.models import EncoderKind, Learning
from portal.retrieval.serializers.answers import EncoderSerializer

USES = (("no", "no"), ("preparing", "preparing"), ("yes", "yes"))


class LearningAskSerializer(serializers.Serializer[Any]):
    """What is asked for."""

    lab = serializers.UUIDField(required=False, help_text="Where you manage several")
    kind = serializers.ChoiceField(EncoderKind.choices, default=EncoderKind.HISTOLOGY)


class LearningMeasureSerializer(serializers.Serializer[Any]):
    """A figure of the patients kept aside, each patient counting alike."""

    name = serializers.CharField(
        help_text="map_at_10, precision_at_10, first_right or agreement (with judgements)"
    )
    regions = serializers.IntegerField()
    patients = serializers.IntegerField()
    old = serializers.FloatField()
    new = serializers.FloatField()
    gain = serializers.FloatField()
    low = serializers.FloatField(help_text="Of the gain: 95 % when patients are drawn again")
    high = serializers.FloatField()


class LearningChangeSerializer(serializers.Serializer[Any]):
    """What became of a label's regions: their average precision."""

    label = serializers.CharField()  # type: ignore[assignment]
    regions = serializers.IntegerField()
    patients = serializers.IntegerField()
    old = serializers.FloatField()
    new = serializers.FloatField()
    better = serializers.IntegerField()
    worse = serializers.IntegerField()
    same = serializers.IntegerField()


class LearningExampleSerializer(serializers.Serializer[Any]):
    """A region kept aside and its nearest of other patients, by ids of ROIs."""

    roi = serializers.UUIDField()
    gain = serializers.FloatField()
    old = serializers.ListField(child=serializers.UUIDField())
    new = serializers.ListField(child=serializers.UUIDField())


class LearningResultSerializer(serializers.Serializer[Any]):
    """Data, protocol and figures."""

    regions = serializers.IntegerField()
    regions_most = serializers.IntegerField(help_text="The newest so many are used")
    labelled = serializers.IntegerField()
    patients = serializers.IntegerField()
    judgements = serializers.IntegerField()
    labels = serializers.IntegerField(help_text="That were learned from")
    learned_regions = serializers.IntegerField()
    learned_patients = serializers.IntegerField()
    kept_aside = serializers.IntegerField(help_text="Patients")
    split = serializers.CharField(help_text="The rule by which patients are kept aside")
    rule = serializers.CharField(help_text="The rule by which it is better")
    chosen = serializers.CharField(help_text="identity: nothing helped")
    judges_by = serializers.CharField()
    measures = LearningMeasureSerializer(many=True)
    changes = LearningChangeSerializer(many=True)
    examples = LearningExampleSerializer(many=True)


class LearningSerializer(serializers.ModelSerializer[Learning]):
    """A metric learned, or being learned, from a lab's archive."""

    base = EncoderSerializer(read_only=True)
    encoder = EncoderSerializer(read_only=True, allow_null=True)
    result = serializers.SerializerMethodField()
    use = serializers.ChoiceField(USES, read_only=True, help_text="Whether searches go by it")

    class Meta:
        model = Learning
        fields = (
            *("id", "lab", "kind", "created_at", "job", "base", "encoder", "is_better"),
            *("use", "result"),
        )

    @extend_schema_field(LearningResultSerializer(allow_null=True))
    def get_result(self, learning: Learning) -> dict[str, Any] | None:
        """As it was written when it was learned."""
        return learning.result
