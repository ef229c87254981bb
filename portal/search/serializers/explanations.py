"""Serializers of explanations."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ml.types import JsonObject
from portal.embeddings.models import Encoder
from portal.search.selectors.explanations import MatchExplanation
from portal.search.selectors.hits import p_value_of


class MatchPatchSerializer(serializers.Serializer[Any]):
    """A patch of a region."""

    box = serializers.ListField(
        child=serializers.FloatField(),
        min_length=4,
        max_length=4,
        help_text="left, top, right, bottom in level-0 pixels; for a picture, in pixels of its "
        "stored copy",
    )
    adds = serializers.FloatField(
        help_text="Contribution to `similarity`, which is the sum over all patches of either "
        "region; negative if it counts against it"
    )


class MatchPairSerializer(serializers.Serializer[Any]):
    """Two patches that match."""

    query = serializers.IntegerField(help_text="Index into `query_patches`, from 0")
    hit = serializers.IntegerField(help_text="Index into `hit_patches`, from 0")
    adds = serializers.FloatField(help_text="To `similarity`")
    share = serializers.FloatField(help_text="Share of the sum of all pairs that add something")


class MatchPointSerializer(serializers.Serializer[Any]):
    """Key point found in both regions: x and y in level-0 pixels of each."""

    query = serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2)
    hit = serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2)


class MatchComparedSerializer(serializers.Serializer[Any]):
    """Numbers of key points that were compared."""

    query = serializers.IntegerField()
    hit = serializers.IntegerField()
    views = serializers.IntegerField(
        help_text=(
            "Pairs of sizes that were tried; others are tried if the first shows nothing in common"
        )
    )


class MatchStainSerializer(serializers.Serializer[Any]):
    """Stain of the two regions and its effect on the match."""

    normalises = serializers.BooleanField(
        help_text="Whether the encoder brings both to one stain first"
    )
    other_distance = serializers.FloatField(
        allow_null=True,
        help_text="Distance with stain treated the other way; null if that is not possible",
    )
    other_p_value = serializers.FloatField(allow_null=True)
    note = serializers.CharField(help_text="Why it is not possible")
    same_colours = serializers.FloatField(
        allow_null=True, help_text="Share of the tissue of both that has the same colours"
    )


class MatchSerializer(serializers.Serializer[Any]):
    """Why a region was found: patches of a slide, key points of an endoscopic picture."""

    similarity = serializers.FloatField(
        allow_null=True, help_text="Cosine of the two vectors; null if key points are compared"
    )
    distance = serializers.FloatField(allow_null=True)
    p_value = serializers.FloatField(
        allow_null=True, help_text="Share of unrelated regions that come as close"
    )
    query_patches = MatchPatchSerializer(many=True)
    hit_patches = MatchPatchSerializer(many=True)
    pairs = MatchPairSerializer(many=True, help_text="The best first, none close to another")
    stain = MatchStainSerializer()
    key_points = MatchPointSerializer(many=True, help_text="The best first")
    key_points_compared = MatchComparedSerializer(
        allow_null=True, help_text="null if patches are compared"
    )
    note = serializers.CharField(
        help_text="Says why if there is nothing to point at; otherwise empty"
    )


def match_represent(explanation: MatchExplanation, encoder: Encoder | None) -> JsonObject:
    """Represent a finished explanation."""

    def p_value(distance: float | None) -> float | None:
        value = p_value_of(encoder, distance) if encoder else None
        return None if value is None else round(value, 5)

    return {
        "similarity": explanation.similarity,
        "distance": explanation.distance,
        "p_value": p_value(explanation.distance),
        "query_patches": _patches(explanation.boxes_a, explanation.contributions_a),
        "hit_patches": _patches(explanation.boxes_b, explanation.contributions_b),
        "pairs": [
            {"query": pair.a, "hit": pair.b, "adds": pair.contribution, "share": pair.share}
            for pair in explanation.pairs
        ],
        "stain": {
            "normalises": explanation.normalises,
            "other_distance": explanation.other_distance,
            "other_p_value": p_value(explanation.other_distance),
            "note": explanation.other_note,
            "same_colours": explanation.colour,
        },
        "key_points": [
            {"query": list(a), "hit": list(b)}
            for a, b in zip(explanation.points_a, explanation.points_b, strict=True)
        ],
        "key_points_compared": (
            {
                "query": explanation.keypoint_count_a,
                "hit": explanation.keypoint_count_b,
                "views": explanation.views,
            }
            if explanation.is_of_points
            else None
        ),
        "note": explanation.note,
    }


def _patches(boxes: Any, adds: Any) -> list[JsonObject]:
    return [{"box": list(box), "adds": add} for box, add in zip(boxes, adds, strict=True)]
