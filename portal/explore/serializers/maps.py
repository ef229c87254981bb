"""Serializers of maps, near-duplicates, label outliers and images to annotate."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ml.types import JsonObject
from portal.annotations.models import Roi
from portal.archive.models import Modality
from portal.embeddings.serializers import EncoderSerializer
from portal.explore.models import RegionMap
from portal.explore.selectors.duplicates import Between, Duplicates
from portal.explore.selectors.label_outliers import LabelOutliers
from portal.explore.selectors.maps import MapCounts
from portal.explore.selectors.points import COLOURS, MapPoints
from portal.explore.selectors.unannotated import UnannotatedPage

MAX_PAGE = 100  # entries per page


class MapCreateSerializer(serializers.Serializer[Any]):
    """Selection of the regions to draw."""

    lab = serializers.UUIDField(required=False, help_text="Needed by members of several labs")
    kind = serializers.ChoiceField(Modality.choices, default=Modality.HISTOLOGY)


class MapSerializer(serializers.ModelSerializer[RegionMap]):
    """A map. It never changes; readers see the regions that are visible to them now."""

    encoder = EncoderSerializer()

    class Meta:
        model = RegionMap
        fields = ("id", "lab", "encoder", "created_at", "is_calibrated")


class MapDetailSerializer(MapSerializer):
    """A map with the numbers of its visible and missing regions."""

    regions = serializers.IntegerField(help_text="Regions on the map that you may see")
    newer = serializers.IntegerField(
        help_text="Regions that you may see and that are not on the map yet"
    )

    class Meta(MapSerializer.Meta):
        fields = (*MapSerializer.Meta.fields, "regions", "newer")  # type: ignore[assignment]


class MapCanvasSerializer(serializers.Serializer[Any]):
    """Image of points."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    accession = serializers.CharField()


class MapColourSerializer(serializers.Serializer[Any]):
    """Value of points."""

    value = serializers.CharField()
    name = serializers.CharField()
    color = serializers.CharField(help_text="Colour of a label; otherwise empty")
    count = serializers.IntegerField()


class MapColouringSerializer(serializers.Serializer[Any]):
    """A way to colour the points."""

    name = serializers.ChoiceField([(name, name) for name in COLOURS])
    values = MapColourSerializer(many=True)
    at = serializers.ListField(
        child=serializers.IntegerField(), help_text="For each point, the index of its value, or -1"
    )


def _column(text: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.IntegerField(), help_text=text)


class MapPointsSerializer(serializers.Serializer[Any]):
    """Points in columns: one entry each in every list."""

    rois = serializers.ListField(child=serializers.UUIDField())
    versions = _column("Versions of the ROIs")
    x = _column("0 to 65535")
    y = _column("0 to 65535, from top to bottom")
    canvas = _column("Index in `canvases`")
    canvases = MapCanvasSerializer(many=True)
    colourings = MapColouringSerializer(many=True)


class BrowseParamsSerializer(serializers.Serializer[Any]):
    """Paging of a list."""

    start = serializers.IntegerField(min_value=0, max_value=1_000_000, default=0)
    limit = serializers.IntegerField(min_value=1, max_value=MAX_PAGE, default=24)


class DuplicatesParamsSerializer(BrowseParamsSerializer):
    """Filter and paging of near-duplicate pairs."""

    between = serializers.ChoiceField([(one.value, one.value) for one in Between], required=False)


class BrowseRoiSerializer(serializers.Serializer[Any]):
    """A region of a list."""

    roi = serializers.UUIDField()
    roi_version = serializers.IntegerField()
    name = serializers.CharField()
    label = serializers.CharField(help_text="Empty if it has none")  # type: ignore[assignment]
    canvas = serializers.UUIDField()
    canvas_name = serializers.CharField()
    accession = serializers.CharField()


class NearPairSerializer(serializers.Serializer[Any]):
    """Two regions closer than any two unrelated ones usually are."""

    between = serializers.ChoiceField([(one.value, one.value) for one in Between])
    one = BrowseRoiSerializer()
    other = BrowseRoiSerializer()
    distance = serializers.FloatField()
    closer_than = serializers.CharField(help_text="Percent of unrelated pairs; empty if unknown")
    labels_differ = serializers.BooleanField()


class NearDuplicatesSerializer(serializers.Serializer[Any]):
    """Pairs, different cases first, then by distance."""

    total = serializers.IntegerField()
    counts = serializers.DictField(child=serializers.IntegerField())
    is_cut = serializers.BooleanField(help_text="True if there are more; the map kept the nearest")
    pairs = NearPairSerializer(many=True)


class MapNeighbourSerializer(BrowseRoiSerializer):
    """The nearest region of another patient."""

    is_for = serializers.BooleanField(help_text="The nearest region that has the suggested label")


class LabelOutlierSerializer(BrowseRoiSerializer):
    """A region that looks unlike its label."""

    suggested = serializers.CharField()
    says = serializers.IntegerField(help_text="Other patients whose nearest region has it")
    agree = serializers.IntegerField(
        help_text="Other patients whose nearest region has the label of this one"
    )
    support = serializers.IntegerField(help_text="Other patients with a close, labelled region")
    neighbours = MapNeighbourSerializer(many=True)


class LabelOutlierListSerializer(serializers.Serializer[Any]):
    """Regions that look unlike their label, clearest first."""

    total = serializers.IntegerField()
    looked_at = serializers.IntegerField(help_text="Labelled regions with enough neighbours")
    silent = serializers.IntegerField(help_text="Labelled regions without enough neighbours")
    confirmed = serializers.IntegerField(help_text="Left out because somebody confirmed the label")
    is_calibrated = serializers.BooleanField(help_text="Whether only close neighbours voted")
    found = LabelOutlierSerializer(many=True)


class UnannotatedSerializer(serializers.Serializer[Any]):
    """Image worth annotating."""

    canvas = serializers.UUIDField()
    canvas_name = serializers.CharField()
    accession = serializers.CharField()
    regions = serializers.IntegerField()
    unknown = serializers.IntegerField(
        allow_null=True, help_text="Squares of its tissue that are unlike all regions of the lab"
    )
    squares = serializers.IntegerField(allow_null=True, help_text="Squares that were compared")


class UnannotatedListSerializer(serializers.Serializer[Any]):
    """Images ordered by unknown tissue, then images without a region."""

    total = serializers.IntegerField()
    without = serializers.IntegerField(help_text="Images without a region that you may see")
    images = serializers.IntegerField()
    found = UnannotatedSerializer(many=True)


def map_represent(counts: MapCounts) -> JsonObject:
    return {**MapSerializer(counts.map).data, "regions": counts.on_map, "newer": counts.newer}


def points_represent(points: MapPoints) -> JsonObject:
    """Represent points without a serializer, which would be slow for a hundred thousand."""
    return {
        "rois": [str(roi_id) for roi_id in points.rois],
        "versions": points.versions,
        "x": points.x,
        "y": points.y,
        "canvas": points.canvas,
        "canvases": [
            {"id": str(pk), "name": name, "accession": accession}
            for pk, name, accession in points.canvases
        ],
        "colourings": [
            {
                "name": colouring.name,
                "values": [
                    {"value": v.value, "name": v.name, "color": v.color, "count": v.count}
                    for v in colouring.values
                ],
                "at": colouring.at,
            }
            for colouring in points.colourings
        ],
    }


def duplicates_represent(duplicates: Duplicates) -> JsonObject:
    """Represent a page of near-duplicates."""
    return {
        "total": duplicates.total,
        "counts": {kind.value: count for kind, count in duplicates.counts.items()},
        "is_cut": duplicates.is_cut,
        "pairs": [
            {
                "between": pair.between.value,
                "one": _roi(pair.one),
                "other": _roi(pair.other),
                "distance": pair.distance,
                "closer_than": pair.closer_than,
                "labels_differ": pair.labels_differ,
            }
            for pair in duplicates.pairs
        ],
    }


def unlike_represent(answer: LabelOutliers) -> JsonObject:
    """Represent a page of label outliers."""
    return {
        "total": answer.total,
        "looked_at": answer.looked_at,
        "silent": answer.silent,
        "confirmed": answer.confirmed,
        "is_calibrated": answer.is_calibrated,
        "found": [
            _roi(outlier.roi)
            | {
                "suggested": outlier.suggested.name,
                "says": outlier.says,
                "agree": outlier.agree,
                "support": outlier.support,
                "neighbours": [_roi(n.roi) | {"is_for": n.is_for} for n in outlier.neighbours],
            }
            for outlier in answer.found
        ],
    }


def unannotated_represent(answer: UnannotatedPage) -> JsonObject:
    """Represent a page of images to annotate."""
    return {
        "total": answer.total,
        "without": answer.without,
        "images": answer.images,
        "found": [
            {
                "canvas": str(row.canvas.pk),
                "canvas_name": row.canvas.name,
                "accession": row.canvas.case.accession,
                "regions": row.regions,
                "unknown": row.novelty.unknown if row.novelty else None,
                "squares": row.novelty.squares if row.novelty else None,
            }
            for row in answer.found
        ],
    }


def _roi(roi: Roi) -> JsonObject:
    return {
        "roi": str(roi.pk),
        "roi_version": roi.version,
        "name": roi.name,
        "label": roi.label.name if roi.label else "",
        "canvas": str(roi.canvas_id),
        "canvas_name": roi.canvas.name,
        "accession": roi.canvas.case.accession,
    }
