"""Serializers of search requests and judgements."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.annotations.models import ReviewState
from portal.archive.models import CanvasKind
from portal.search.models import Judgement
from portal.search.selectors.similar_cases import MAX_EXAMPLES, MAX_EXPAND, MAX_K


class SearchFiltersSerializer(serializers.Serializer[Any]):
    """Filters of hits; omitted ones match all."""

    organ = serializers.CharField(required=False, allow_blank=True, max_length=80)
    diagnosis = serializers.CharField(required=False, allow_blank=True, max_length=200)
    tag = serializers.CharField(required=False, allow_blank=True, max_length=80)
    stain = serializers.CharField(
        required=False, allow_blank=True, max_length=80, help_text="Of the slide"
    )
    scanner = serializers.CharField(
        required=False, allow_blank=True, max_length=60, help_text="Vendor of the slide file"
    )
    kind = serializers.ChoiceField(CanvasKind.choices, required=False, allow_blank=True)
    label = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]
    review_state = serializers.ChoiceField(ReviewState.choices, required=False, allow_blank=True)
    since = serializers.DateField(
        required=False, allow_null=True, help_text="Drawn on this day or later"
    )
    until = serializers.DateField(
        required=False, allow_null=True, help_text="Drawn on this day or before"
    )
    case = serializers.ChoiceField(
        [("only", "The case of the ROI"), ("others", "All other cases")],
        required=False,
        allow_blank=True,
        help_text="`only` searches the case of the ROI, whose patient is then not left out",
    )


class SimilarOptionsSerializer(serializers.Serializer[Any]):
    k = serializers.IntegerField(min_value=1, max_value=MAX_K, default=20)
    exclude_same_patient = serializers.BooleanField(default=True)
    encoder = serializers.UUIDField(required=False, allow_null=True, help_text="Default if omitted")
    expand = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_EXPAND,
        help_text="The number of nearest regions that the query is expanded by; 0 orders by "
        "distance alone, unless `diffuse` is true; if left out, the setting of the portal",
    )
    diffuse = serializers.BooleanField(
        required=False,
        allow_null=True,
        help_text="Order by diffusion: near regions pass on the similarity that reaches them from "
        "the ROI; false orders by distance alone, unless `expand` is given; if left out, the "
        "setting of the portal",
    )
    by_case = serializers.BooleanField(
        default=False,
        help_text="One result for each case, up to `k` cases, with its other regions in `also`",
    )
    facets = serializers.BooleanField(
        default=False, help_text="Count the searched set too, which gives each vote its base rate"
    )
    liked = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=MAX_EXAMPLES,
        help_text="More ROIs of the lab that results should be like",
    )
    unliked = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=MAX_EXAMPLES,
        help_text="ROIs that results should not be like; these ROIs are left out of the results",
    )
    judged = serializers.BooleanField(
        default=False, help_text="Add your own judgements of this ROI's results to both lists"
    )


class SearchSerializer(SimilarOptionsSerializer):
    """Search with an ROI."""

    roi = serializers.UUIDField()
    filters = SearchFiltersSerializer(required=False)


class SimilarQuerySerializer(SimilarOptionsSerializer, SearchFiltersSerializer):
    """Search options as query parameters."""


class JudgementSerializer(serializers.ModelSerializer[Judgement]):
    """Your judgement of whether another region is like the ROI."""

    other = serializers.UUIDField(source="other_id", help_text="ROI of the same lab")

    class Meta:
        model = Judgement
        fields = ("other", "verdict", "updated_at")
        read_only_fields = ("updated_at",)
