"""Serializers of similar regions."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.embeddings.serializers import EncoderSerializer
from portal.explore.services.similar_regions import MAX_SIMILAR_REGIONS


class SimilarRegionsParamsSerializer(serializers.Serializer[Any]):
    """Query parameters of similar regions."""

    limit = serializers.IntegerField(
        min_value=1, max_value=MAX_SIMILAR_REGIONS, default=MAX_SIMILAR_REGIONS
    )


class SimilarRegionSerializer(serializers.Serializer[Any]):
    """A square of the slide."""

    bounds = serializers.ListField(
        child=serializers.FloatField(),
        min_length=4,
        max_length=4,
        help_text="left, top, right, bottom in level-0 pixels",
    )
    distance = serializers.FloatField(
        help_text="Euclidean distance between its vector and that of the ROI"
    )
    p_value = serializers.FloatField(
        allow_null=True,
        help_text=(
            "Share of unrelated regions that come as close; null if the encoder is not calibrated"
        ),
    )
    is_close = serializers.BooleanField(
        allow_null=True,
        help_text="Nearer than the nearest of as many unrelated regions usually is",
    )


class SimilarRegionsSerializer(serializers.Serializer[Any]):
    """Squares most similar to the ROI that are not drawn on, nearest first."""

    regions = SimilarRegionSerializer(many=True)
    looked_at = serializers.IntegerField(help_text="Squares that were compared")
    drawn_on = serializers.IntegerField(help_text="Squares left out because ROIs cover them")
    tried = serializers.IntegerField(help_text="Squares that were sampled")
    total = serializers.IntegerField(
        help_text="Squares in the tissue; if more than `tried`, a sample was taken"
    )
    side_px = serializers.IntegerField(help_text="Side of each square, in level-0 pixels")
    encoder = EncoderSerializer()
