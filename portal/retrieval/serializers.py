"""Search results as the API shows them."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from portal.annotations.models import Label
from portal.archive.models import CanvasKind
from portal.retrieval.models import Encoder
from portal.retrieval.selectors import EXPAND_MOST, K_MOST, Hit, LabelVote, SimilarResult


class EncoderSerializer(serializers.ModelSerializer[Encoder]):
    """What turns ROIs into vectors; searches use the default one."""

    class Meta:
        model = Encoder
        fields = ("id", "name", "version", "config_hash", "dim", "kind", "is_default", "is_next")


class SearchFiltersSerializer(serializers.Serializer[Any]):
    """Only hits that match; what is left out matches all."""

    organ = serializers.CharField(required=False, allow_blank=True, max_length=80)
    label = serializers.UUIDField(required=False, allow_null=True)  # type: ignore[assignment]
    kind = serializers.ChoiceField(CanvasKind.choices, required=False, allow_blank=True)


class SimilarOptionsSerializer(serializers.Serializer[Any]):
    """Options of a search."""

    k = serializers.IntegerField(min_value=1, max_value=K_MOST, default=20)
    exclude_same_patient = serializers.BooleanField(default=True)
    encoder = serializers.UUIDField(required=False, allow_null=True, help_text="default encoder")
    expand = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=EXPAND_MOST,
        help_text="By how many of its nearest the query is expanded; 0: order by distance alone; "
        "left out: as the portal is set",
    )


class SearchSerializer(SimilarOptionsSerializer):
    """A search."""

    roi = serializers.UUIDField()
    filters = SearchFiltersSerializer(required=False)


class SimilarQuerySerializer(SimilarOptionsSerializer, SearchFiltersSerializer):
    """The same, as query parameters."""


class LabelRefSerializer(serializers.Serializer[Any]):
    """A label by name."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    color = serializers.CharField()


class HitRoiSerializer(serializers.Serializer[Any]):
    """The ROI found."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    label = LabelRefSerializer(allow_null=True)  # type: ignore[assignment]
    review_state = serializers.CharField()
    bounds = serializers.ListField(child=serializers.FloatField(), min_length=4, max_length=4)
    frame_pts = serializers.IntegerField(allow_null=True)


class HitCaseSerializer(serializers.Serializer[Any]):
    """The case it belongs to."""

    id = serializers.UUIDField()
    accession = serializers.CharField()
    organ = serializers.CharField()
    diagnosis = serializers.CharField()


class HitCanvasSerializer(serializers.Serializer[Any]):
    """The canvas it lies on."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(CanvasKind.choices)


class HitSerializer(serializers.Serializer[Any]):
    """One similar ROI; the best first, ties by ``embedding``."""

    rank = serializers.IntegerField()
    distance = serializers.FloatField(
        help_text="Euclidean, between the vectors of the two ROIs; does not ascend where the query "
        "was expanded"
    )
    p_value = serializers.FloatField(
        allow_null=True,
        help_text="Share of unrelated regions that come as close; null: encoder not calibrated",
    )
    is_close = serializers.BooleanField(
        allow_null=True, help_text="Nearer than unrelated tissue usually comes; null as p_value"
    )
    embedding = serializers.IntegerField()
    roi = HitRoiSerializer()
    case = HitCaseSerializer()
    canvas = HitCanvasSerializer()
    thumbnail_url = serializers.CharField()
    viewer_url = serializers.CharField()


class VoteSerializer(serializers.Serializer[Any]):
    """How many of the results carry a label; null: no label."""

    label = LabelRefSerializer(allow_null=True)  # type: ignore[assignment]
    count = serializers.IntegerField()
    share = serializers.FloatField()


class IndexUsedSerializer(serializers.Serializer[Any]):
    """What was searched: an index file, and beside it what is newer."""

    version = serializers.IntegerField(help_text="0 where all came from the database")
    snapshot = serializers.UUIDField(allow_null=True)
    in_file = serializers.IntegerField()
    newer = serializers.IntegerField()
    masked = serializers.IntegerField()
    last_embedding = serializers.IntegerField()


class SimilarSerializer(serializers.Serializer[Any]):
    """Similar ROIs, and what they came from."""

    roi = serializers.UUIDField()
    embedding = serializers.IntegerField()
    roi_version = serializers.IntegerField(help_text="The version whose outline was embedded")
    k = serializers.IntegerField()
    exclude_same_patient = serializers.BooleanField()
    expand = serializers.IntegerField()
    expanded_by = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Embeddings that the query was expanded by; none: ordered by distance",
    )
    encoder = EncoderSerializer()
    index = IndexUsedSerializer()
    nothing_close = serializers.BooleanField(
        help_text="There are results, and unrelated tissue often comes as close to the ROI itself "
        "as the nearest"
    )
    votes = VoteSerializer(many=True)
    results = HitSerializer(many=True)


def similar_represent(result: SimilarResult) -> dict[str, Any]:
    """A search's answer."""
    query, used = result.query, result.index
    return {
        "roi": str(query.roi.pk),
        "embedding": result.embedding_id,
        "roi_version": result.roi_version,
        "k": query.k,
        "exclude_same_patient": query.exclude_same_patient,
        "expand": query.expand,
        "expanded_by": list(result.expanded_by),
        "encoder": EncoderSerializer(query.encoder).data,
        "index": {
            "version": used.version,
            "snapshot": str(used.snapshot_id) if used.snapshot_id else None,
            "in_file": used.in_file,
            "newer": used.newer,
            "masked": used.masked,
            "last_embedding": used.last_embedding_id,
        },
        "nothing_close": result.says_nothing_close,
        "votes": [_vote(vote) for vote in result.votes],
        "results": [_hit(hit) for hit in result.hits],
    }


def _vote(vote: LabelVote) -> dict[str, Any]:
    return {"label": _label(vote.label), "count": vote.count, "share": round(vote.share, 4)}


def _hit(hit: Hit) -> dict[str, Any]:
    roi, canvas, case = hit.roi, hit.roi.canvas, hit.roi.canvas.case
    return {
        "rank": hit.rank,
        "distance": hit.distance,
        "p_value": None if hit.p_value is None else round(hit.p_value, 5),
        "is_close": hit.is_close,
        "embedding": hit.embedding_id,
        "roi": {
            "id": str(roi.pk),
            "name": roi.name,
            "version": roi.version,
            "label": _label(roi.label),
            "review_state": str(roi.review_state),
            "bounds": [roi.left, roi.top, roi.right, roi.bottom],
            "frame_pts": roi.frame_pts,
        },
        "case": {
            "id": str(case.pk),
            "accession": case.accession,
            "organ": case.organ,
            "diagnosis": case.diagnosis,
        },
        "canvas": {"id": str(canvas.pk), "name": canvas.name, "kind": str(canvas.kind)},
        "thumbnail_url": reverse("retrieval:thumbnail", args=[roi.pk]) + f"?v={roi.version}",
        "viewer_url": reverse("archive:viewer", args=[canvas.pk]) + f"?roi={roi.pk}",
    }


def _label(label: Label | None) -> dict[str, Any] | None:
    return {"id": str(label.pk), "name": label.name, "color": label.color} if label else None
