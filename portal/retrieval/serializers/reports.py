"""Reports as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework import serializers

from ml.types import JsonObject
from portal.retrieval.models import Report, ReportRegion
from portal.retrieval.selectors import Change, Changes, Frozen, FrozenRegion
from portal.retrieval.serializers.asked import SearchFiltersSerializer, SimilarOptionsSerializer


class ReportAskSerializer(SimilarOptionsSerializer, SearchFiltersSerializer):
    """A search whose answer is kept."""

    roi = serializers.UUIDField(required=False, allow_null=True)
    query = serializers.UUIDField(required=False, allow_null=True)


class ReportSerializer(serializers.ModelSerializer[Report]):
    """A report in a list."""

    case = serializers.UUIDField(
        source="canvas.case_id", default=None, allow_null=True, read_only=True
    )

    class Meta:
        model = Report
        fields = ("id", "lab", "name", "made_by", "created_at", "roi", "query", "canvas", "case")


class ReportLabelSerializer(serializers.Serializer[Any]):
    """A label as it was."""

    name = serializers.CharField()
    color = serializers.CharField()


class ReportHitSerializer(serializers.Serializer[Any]):
    """A result as it was."""

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
    """The encoder as it was."""

    name = serializers.CharField()
    version = serializers.CharField()
    config_hash = serializers.CharField()


class ReportIndexSerializer(serializers.Serializer[Any]):
    """What was searched."""

    version = serializers.IntegerField(help_text="0 if all came from the database")
    in_file = serializers.IntegerField()
    newer = serializers.IntegerField()


class ReportWholeSerializer(ReportSerializer):
    """A report with its results."""

    encoder = ReportEncoderSerializer()
    index = ReportIndexSerializer()
    options = serializers.DictField(help_text="The options of the search, except for marks")
    nothing_close = serializers.BooleanField()
    refined_by = serializers.IntegerField(help_text="Marks that moved the search")
    count = serializers.IntegerField(
        help_text="Results when the report was made; more than are left if some were erased"
    )
    results = ReportHitSerializer(many=True)
    pdf_url = serializers.CharField(help_text="URL of a page, which needs a session")

    class Meta(ReportSerializer.Meta):
        fields = (  # type: ignore[assignment]
            *ReportSerializer.Meta.fields,
            *("encoder", "index", "options", "nothing_close", "refined_by", "count"),
            *("results", "pdf_url"),
        )


class ReportChangeSerializer(serializers.Serializer[Any]):
    """A result then and now."""

    change = serializers.ChoiceField([(str(one), str(one)) for one in Change])
    before = serializers.IntegerField(allow_null=True, help_text="Its rank in the report")
    now = serializers.IntegerField(allow_null=True, help_text="Its rank now")
    roi = serializers.UUIDField()


class ReportAgainSerializer(serializers.Serializer[Any]):
    """The same search asked again."""

    results = ReportChangeSerializer(many=True)
    encoder_before = serializers.CharField(
        allow_null=True, help_text="null if the encoder is the same"
    )
    index_before = serializers.IntegerField(
        allow_null=True, help_text="Version; null if it is the same"
    )
    erased = serializers.IntegerField(help_text="Results that can no longer be compared")


def report_represent(report: Report, regions: Iterable[ReportRegion]) -> JsonObject:
    """A report with its results."""
    frozen = Frozen.of_json(report.content)
    name, version, config_hash = frozen.encoder
    return {
        **ReportSerializer(report).data,
        "encoder": {"name": name, "version": version, "config_hash": config_hash},
        "index": dict(zip(("version", "in_file", "newer"), frozen.index, strict=True)),
        "options": frozen.options,
        "nothing_close": frozen.nothing_close,
        "refined_by": frozen.refined_by,
        "count": frozen.hits,
        "results": [_hit(region) for region in regions],
    }


def changes_represent(changes: Changes) -> JsonObject:
    """A report beside the same search asked again."""
    return {
        "results": [
            {
                "change": str(one.change),
                "before": one.before,
                "now": one.now,
                "roi": str(one.hit.roi.pk) if one.hit else _roi(one.region),
            }
            for one in changes.hits
        ],
        "encoder_before": changes.encoder[0] if changes.encoder else None,
        "index_before": changes.index[0] if changes.index else None,
        "erased": changes.erased,
    }


def _roi(region: ReportRegion | None) -> str:
    return str(region.content["roi"]) if region else ""


def _hit(region: ReportRegion) -> JsonObject:
    said = FrozenRegion.of_json(region.content)
    return {
        "rank": region.rank,
        "roi": said.roi,
        "roi_version": said.version,
        "name": said.name,
        "label": {"name": said.label[0], "color": said.label[1]} if said.label else None,
        "review_state": said.review_state,
        "accession": said.accession,
        "organ": said.organ,
        "stain": said.stain,
        "diagnosis": said.diagnosis,
        "canvas": str(region.canvas_id),
        "distance": said.distance,
        "p_value": said.p_value,
        "is_close": said.is_close,
        "also": said.also,
    }
