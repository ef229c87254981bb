"""Places of a slide like one of its ROIs, as the API asks for and shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.retrieval.serializers.answers import EncoderSerializer
from portal.retrieval.services import PLACES_MOST


class PlacesAskedSerializer(serializers.Serializer[Any]):
    """How many are wanted."""

    limit = serializers.IntegerField(min_value=1, max_value=PLACES_MOST, default=PLACES_MOST)


class PlaceSerializer(serializers.Serializer[Any]):
    """A square of the slide."""

    bounds = serializers.ListField(
        child=serializers.FloatField(), help_text="left, top, right, bottom in level-0 pixels"
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


class PlacesSerializer(serializers.Serializer[Any]):
    """The places most like the ROI that nobody has drawn on, the nearest first."""

    places = PlaceSerializer(many=True)
    looked_at = serializers.IntegerField(help_text="Squares that were compared")
    drawn_on = serializers.IntegerField(help_text="Squares left out because ROIs cover them")
    tried = serializers.IntegerField(help_text="Squares that were sampled")
    total = serializers.IntegerField(
        help_text="Squares in the tissue; if more than `tried`, a sample was taken"
    )
    side_px = serializers.IntegerField(help_text="Side of each square, in level-0 pixels")
    encoder = EncoderSerializer()
