"""Serializers of reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework import serializers

from ml.types import JsonObject
from portal.search.models import (
    MAX_INTERPRETATION,
    Report,
    ReportInterpretation,
    ReportRegion,
)
from portal.search.selectors.reports import Change, Changes, ReportContent, ReportRegionContent
from portal.search.serializers.requests import SearchFiltersSerializer, SimilarOptionsSerializer


class ReportCreateSerializer(SimilarOptionsSerializer, SearchFiltersSerializer):
    """Search to store as a report."""

    roi = serializers.UUIDField(required=False, allow_null=True)
    query = serializers.UUIDField(required=False, allow_null=True)
    interpretation = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=MAX_INTERPRETATION,
        help_text="Plain text; it can be changed later",
    )


class ReportSerializer(serializers.ModelSerializer[Report]):
    """A report in a list."""

    case = serializers.UUIDField(
        source="canvas.case_id", default=None, allow_null=True, read_only=True
    )

    class Meta:
        model = Report
        fields = ("id", "lab", "name", "made_by", "created_at", "roi", "query", "canvas", "case")


class ReportLabelSerializer(serializers.Serializer[Any]):
    """Label at the time of the report."""

    name = serializers.CharField()
    color = serializers.CharField()


class ReportHitSerializer(serializers.Serializer[Any]):
    """Result at the time of the report."""

    rank = serializers.IntegerField()
    roi = serializers.UUIDField(help_text="It may have been deleted since then")
    roi_version = serializers.IntegerField()
    name = serializers.CharField()
    label = ReportLabelSerializer(allow_null=True)  # type: ignore[assignment]
    review_state = serializers.CharField()
    accession = serializers.CharField()
    organ = serializers.CharField()
    diagnosis = serializers.CharField()
    stain = serializers.CharField()
    canvas = serializers.UUIDField()
    distance = serializers.FloatField()
    p_value = serializers.FloatField(allow_null=True)
    is_close = serializers.BooleanField(allow_null=True)
    also = serializers.IntegerField(help_text="Other regions of its case that were found with it")


class ReportEncoderSerializer(serializers.Serializer[Any]):
    """Encoder at the time of the report."""

    name = serializers.CharField()
    version = serializers.CharField()
    config_hash = serializers.CharField()


class ReportIndexSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(help_text="0 if all came from the database")
    in_file = serializers.IntegerField()
    newer = serializers.IntegerField()


class ReportInterpretationSerializer(serializers.ModelSerializer[ReportInterpretation]):
    """A version of a report's interpretation; the last one counts."""

    text = serializers.CharField(help_text="Plain text; empty if it was taken back")

    class Meta:
        model = ReportInterpretation
        fields = ("version", "text", "written_by", "created_at")


class ReportInterpretSerializer(serializers.Serializer[Any]):
    """A new text of a report's interpretation."""

    text = serializers.CharField(
        max_length=MAX_INTERPRETATION, allow_blank=True, help_text="Plain text; empty takes it back"
    )
    version = serializers.IntegerField(
        min_value=0, help_text="Version that the text replaces; 0 if there was none"
    )


class ReportDetailSerializer(ReportSerializer):
    """A report with its results."""

    encoder = ReportEncoderSerializer()
    index = ReportIndexSerializer()
    options = serializers.DictField(help_text="The options of the search, except for marks")
    nothing_close = serializers.BooleanField()
    refined_by = serializers.IntegerField(help_text="Marks that moved the search")
    count = serializers.IntegerField(
        help_text="Results when the report was made; more than are left if some were erased"
    )
    interpretation = ReportInterpretationSerializer(
        allow_null=True, help_text="Null if nobody wrote one or it was taken back"
    )
    results = ReportHitSerializer(many=True)
    pdf_url = serializers.CharField(help_text="URL of a page, which needs a session")

    class Meta(ReportSerializer.Meta):
        fields = (  # type: ignore[assignment]
            *ReportSerializer.Meta.fields,
            *("encoder", "index", "options", "nothing_close", "refined_by", "count"),
            *("interpretation", "results", "pdf_url"),
        )


class ReportChangeSerializer(serializers.Serializer[Any]):
    """Result then and now."""

    change = serializers.ChoiceField([(str(one), str(one)) for one in Change])
    before = serializers.IntegerField(allow_null=True, help_text="Its rank in the report")
    now = serializers.IntegerField(allow_null=True, help_text="Its rank now")
    roi = serializers.UUIDField()


class ReportComparisonSerializer(serializers.Serializer[Any]):
    """Comparison of a report with the repeated search."""

    results = ReportChangeSerializer(many=True)
    encoder_before = serializers.CharField(
        allow_null=True, help_text="null if the encoder is the same"
    )
    index_before = serializers.IntegerField(
        allow_null=True, help_text="Version; null if it is the same"
    )
    erased = serializers.IntegerField(help_text="Results that can no longer be compared")


def report_represent(
    report: Report,
    regions: Iterable[ReportRegion],
    interpretation: ReportInterpretation | None,
) -> JsonObject:
    """Represent a report with its results."""
    content = ReportContent.from_json(report.content)
    name, version, config_hash = content.encoder
    return {
        **ReportSerializer(report).data,
        "encoder": {"name": name, "version": version, "config_hash": config_hash},
        "index": dict(zip(("version", "in_file", "newer"), content.index, strict=True)),
        "options": content.options,
        "nothing_close": content.nothing_close,
        "refined_by": content.refined_by,
        "count": content.hits,
        "interpretation": (
            ReportInterpretationSerializer(interpretation).data if interpretation else None
        ),
        "results": [_hit(region) for region in regions],
    }


def changes_represent(changes: Changes) -> JsonObject:
    """Represent the difference between a report and the repeated search."""
    return {
        "results": [
            {
                "change": str(hit.change),
                "before": hit.before,
                "now": hit.now,
                "roi": str(hit.hit.roi.pk) if hit.hit else _roi_id(hit.region),
            }
            for hit in changes.hits
        ],
        "encoder_before": changes.encoder[0] if changes.encoder else None,
        "index_before": changes.index[0] if changes.index else None,
        "erased": changes.erased,
    }


def _roi_id(region: ReportRegion | None) -> str:
    return str(region.content["roi"]) if region else ""


def _hit(region: ReportRegion) -> JsonObject:
    hit = ReportRegionContent.from_json(region.content)
    return {
        "rank": region.rank,
        "roi": hit.roi,
        "roi_version": hit.version,
        "name": hit.name,
        "label": {"name": hit.label[0], "color": hit.label[1]} if hit.label else None,
        "review_state": hit.review_state,
        "accession": hit.accession,
        "organ": hit.organ,
        "stain": hit.stain,
        "diagnosis": hit.diagnosis,
        "canvas": str(region.canvas_id),
        "distance": hit.distance,
        "p_value": hit.p_value,
        "is_close": hit.is_close,
        "also": hit.also,
    }
