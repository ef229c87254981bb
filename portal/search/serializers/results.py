"""Serializers of search results."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from ml.types import JsonObject
from portal.annotations.models import Label
from portal.archive.models import CanvasKind, Modality
from portal.archive.selectors.stains import stain_shown
from portal.embeddings.serializers import EncoderSerializer
from portal.search.selectors.facets import FACETS, Facets
from portal.search.selectors.hits import Hit
from portal.search.selectors.similar_cases import SimilarQuery, SimilarResult
from portal.search.selectors.votes import Vote, VoteTally


class LabelRefSerializer(serializers.Serializer[Any]):
    """A label by name."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    color = serializers.CharField()


class HitRoiSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    label = LabelRefSerializer(allow_null=True)  # type: ignore[assignment]
    review_state = serializers.CharField()
    bounds = serializers.ListField(child=serializers.FloatField(), min_length=4, max_length=4)
    frame_pts = serializers.IntegerField(allow_null=True)


class HitCaseSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    accession = serializers.CharField()
    organ = serializers.CharField()
    diagnosis = serializers.CharField()


class HitCanvasSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(CanvasKind.choices)
    modality = serializers.ChoiceField(Modality.choices)
    stain = serializers.CharField(help_text="Of a slide; empty where nobody knows it")
    scale_unknown = serializers.BooleanField(
        help_text="The microns per pixel are not known, and the encoder assumed 0.5"
    )


class PlainHitSerializer(serializers.Serializer[Any]):
    """A similar ROI."""

    rank = serializers.IntegerField()
    distance = serializers.FloatField(
        help_text="Euclidean distance between the vectors of the two ROIs; results are not in this"
        " order if the query was expanded"
    )
    p_value = serializers.FloatField(
        allow_null=True,
        help_text=(
            "Share of unrelated regions that come as close; null if the encoder is not calibrated"
        ),
    )
    is_close = serializers.BooleanField(
        allow_null=True,
        help_text="Nearer than the nearest of as many unrelated regions usually is; null if "
        "p_value is null",
    )
    embedding = serializers.IntegerField()
    roi = HitRoiSerializer()
    case = HitCaseSerializer()
    canvas = HitCanvasSerializer()
    thumbnail_url = serializers.CharField()
    viewer_url = serializers.CharField()


class HitSerializer(PlainHitSerializer):
    """A similar ROI; the best first, ties by ``embedding``."""

    also = PlainHitSerializer(
        many=True, help_text="With `by_case`: the other regions of the case, the best first"
    )


class BaseRateSerializer(serializers.Serializer[Any]):
    """Frequency of a value in the searched set."""

    cases = serializers.IntegerField()
    of = serializers.IntegerField()


class VoteSerializer(serializers.Serializer[Any]):
    """Votes for one label or diagnosis."""

    value = serializers.CharField(help_text="In the form that a filter takes")
    name = serializers.CharField()
    weight = serializers.FloatField(
        help_text="Share of all votes; a hit twice as far away has half a vote"
    )
    cases = serializers.IntegerField()
    regions = serializers.IntegerField()
    base_rate = BaseRateSerializer(allow_null=True)


class TallySerializer(serializers.Serializer[Any]):
    """Votes of the close results, one per case, heaviest first."""

    votes = VoteSerializer(many=True)
    cases = serializers.IntegerField(help_text="Cases that voted")
    silent = serializers.IntegerField(help_text="Close results without a value")
    dissent = serializers.IntegerField(
        allow_null=True,
        help_text="Embedding of the nearest result that disagrees with the first vote",
    )


class VotesSerializer(serializers.Serializer[Any]):
    label = TallySerializer()  # type: ignore[assignment]
    diagnosis = TallySerializer()


class FacetValueSerializer(serializers.Serializer[Any]):
    """Value to filter by, and the number of regions with it."""

    value = serializers.CharField()
    name = serializers.CharField()
    count = serializers.IntegerField()
    is_chosen = serializers.BooleanField()


class DaysFacetValueSerializer(FacetValueSerializer):
    """Range of days to filter by; `since` and `until` are its ends."""

    since = serializers.DateField(allow_null=True, help_text="null: open")
    until = serializers.DateField(allow_null=True, help_text="null: open")


class FacetValuesSerializer(serializers.Serializer[Any]):
    """Values of each facet, most frequent first; newest first for `date`."""

    organ = FacetValueSerializer(many=True)
    diagnosis = FacetValueSerializer(many=True)
    stain = FacetValueSerializer(many=True)
    label = FacetValueSerializer(many=True)  # type: ignore[assignment]
    review_state = FacetValueSerializer(many=True)
    kind = FacetValueSerializer(many=True)
    scanner = FacetValueSerializer(many=True)
    tag = FacetValueSerializer(many=True)
    date = DaysFacetValueSerializer(many=True)
    case = FacetValueSerializer(many=True)


class FacetsSerializer(serializers.Serializer[Any]):
    """The searched set."""

    regions = serializers.IntegerField()
    cases = serializers.IntegerField()
    values = FacetValuesSerializer()


class IndexUsedSerializer(serializers.Serializer[Any]):
    """The searched index file, and the number of newer regions."""

    version = serializers.IntegerField(help_text="0 if all came from the database")
    snapshot = serializers.UUIDField(allow_null=True)
    in_file = serializers.IntegerField()
    newer = serializers.IntegerField()
    masked = serializers.IntegerField()
    last_embedding = serializers.IntegerField()


class SimilarSerializer(serializers.Serializer[Any]):
    """Similar ROIs and their origin."""

    roi = serializers.UUIDField(allow_null=True, help_text="null if the search was with a query")
    query = serializers.UUIDField(allow_null=True, help_text="null if the search was with an ROI")
    embedding = serializers.IntegerField(allow_null=True)
    roi_version = serializers.IntegerField(
        allow_null=True, help_text="The version of the ROI whose outline was embedded"
    )
    k = serializers.IntegerField()
    exclude_same_patient = serializers.BooleanField()
    expand = serializers.IntegerField()
    expanded_by = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Embeddings that the query was expanded by",
    )
    diffuse = serializers.BooleanField(
        help_text="Ordered by diffusion; otherwise, if neither expanded nor refined, by distance"
    )
    refined_by = serializers.IntegerField(help_text="Examples that moved the query")
    encoder = EncoderSerializer()
    scale_unknown = serializers.BooleanField(
        help_text=(
            "The microns per pixel of what was searched with are not known; the encoder assumed "
            "0.5, so what was found may be of another magnification"
        )
    )
    index = IndexUsedSerializer()
    nothing_close = serializers.BooleanField(
        help_text="There are results, but the nearest of as many unrelated regions often comes as "
        "close to the ROI"
    )
    facets = FacetsSerializer(allow_null=True)
    votes = VotesSerializer()
    results = HitSerializer(many=True)


_FACETS: dict[str, type[FacetValueSerializer]] = {"date": DaysFacetValueSerializer}


def similar_represent(result: SimilarResult) -> JsonObject:
    """Represent the result of a search."""
    query, used = result.query, result.index
    return {
        "roi": str(query.roi.pk) if query.roi else None,
        "query": str(query.stored_query.pk) if query.stored_query else None,
        "embedding": result.embedding_id,
        "roi_version": result.roi_version,
        "k": query.k,
        "exclude_same_patient": query.exclude_same_patient,
        "expand": query.expand,
        "expanded_by": list(result.expanded_by),
        "diffuse": query.diffuse and not result.refined_by,
        "refined_by": result.refined_by,
        "encoder": EncoderSerializer(query.encoder).data,
        "scale_unknown": query.scale_unknown,
        "index": {
            "version": used.version,
            "snapshot": str(used.snapshot_id) if used.snapshot_id else None,
            "in_file": used.in_file,
            "newer": used.newer,
            "masked": used.masked,
            "last_embedding": used.last_embedding_id,
        },
        "nothing_close": result.says_nothing_close,
        "facets": _facets(result.facets) if result.facets else None,
        "votes": {"label": _tally(result.labels), "diagnosis": _tally(result.diagnoses)},
        "results": [
            _hit(hit, query) | {"also": [_hit(further_hit, query) for further_hit in hit.also]}
            for hit in result.hits
        ],
    }


def _tally(tally: VoteTally) -> JsonObject:
    return {
        "votes": [_vote(vote) for vote in tally.votes],
        "cases": tally.cases,
        "silent": tally.silent,
        "dissent": tally.dissent.embedding_id if tally.dissent else None,
    }


def _vote(vote: Vote) -> JsonObject:
    return {
        "value": vote.value,
        "name": vote.name,
        "weight": round(vote.weight, 4),
        "cases": vote.cases,
        "regions": vote.regions,
        "base_rate": {"cases": vote.base[0], "of": vote.base[1]} if vote.base else None,
    }


def _facets(facets: Facets) -> JsonObject:
    return {
        "regions": facets.regions,
        "cases": facets.cases,
        "values": {
            facet: _FACETS.get(facet, FacetValueSerializer)(facets.values[facet], many=True).data
            for facet in FACETS
        },
    }


def _hit(hit: Hit, query: SimilarQuery) -> JsonObject:
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
        "canvas": {
            "id": str(canvas.pk),
            "name": canvas.name,
            "kind": str(canvas.kind),
            "modality": str(canvas.modality),
            "stain": stain_shown(canvas),
            "scale_unknown": query.assumes_scale_of(canvas),
        },
        "thumbnail_url": reverse("search:thumbnail", args=[roi.pk]) + f"?v={roi.version}",
        "viewer_url": reverse("archive:viewer", args=[canvas.pk]) + f"?roi={roi.pk}",
    }


def _label(label: Label | None) -> JsonObject | None:
    return {"id": str(label.pk), "name": label.name, "color": label.color} if label else None
