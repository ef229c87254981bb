"""Serializers of figures and thresholds."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ml.types import JsonObject
from portal.jobs.serializers import JobSerializer
from portal.quantification.models import QuantificationSettings, RoiQuantification, Staining
from portal.quantification.selectors import RegionFigures, is_stale, nuclei_of


class QuantificationStartSerializer(serializers.Serializer[Any]):
    """Choice of a measurement."""

    staining = serializers.ChoiceField(
        Staining.choices,
        required=False,
        help_text="Without it: H&E on a slide stained so, a nuclear marker on any other",
    )


class FiguresSerializer(serializers.ModelSerializer[RoiQuantification]):
    """Figures of a region. Densities are decadic, against a white of 255."""

    mean_od = serializers.DictField(
        child=serializers.FloatField(), help_text="Mean density over the tissue, by stain"
    )
    bin_counts = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Nuclei that are 0, 1+, 2+ and 3+; empty without a marker in nuclei",
    )
    thresholds = serializers.SerializerMethodField(help_text="By which it was measured")

    class Meta:
        model = RoiQuantification
        fields = (
            "staining",
            "measured_at",
            "roi_version",
            "config_hash",
            "thresholds",
            "area_mm2",
            "tissue_mm2",
            "mean_od",
            "positive_area_percent",
            "nucleus_count",
            "nuclei_per_mm2",
            "bin_counts",
            "positive_percent",
            "h_score",
            "nuclei_missing",
        )

    def get_thresholds(self, row: RoiQuantification) -> dict[str, float]:
        """Thresholds of the configuration."""
        return {k: v for k, v in row.config.items() if k.endswith(("_od", "_um2"))}


class GridFiguresSerializer(serializers.Serializer[Any]):
    """Figures of the fields of a grid together."""

    text = serializers.CharField(help_text="10 fields, 2.37 mm²")
    field_count = serializers.IntegerField()
    area_mm2 = serializers.FloatField(help_text="Sum of the nominal areas")
    measured_count = serializers.IntegerField(help_text="Fields with figures that are not stale")
    nucleus_count = serializers.IntegerField(
        allow_null=True, help_text="null until nuclei were counted in all fields"
    )
    nuclei_per_mm2 = serializers.FloatField(allow_null=True)


class RegionFiguresSerializer(serializers.Serializer[Any]):
    """Figures of a region, and the job that measures it."""

    roi = serializers.UUIDField()
    figures = FiguresSerializer(allow_null=True, help_text="null if it was never measured")
    is_stale = serializers.BooleanField(
        help_text="The outline or the pixel size has changed since it was measured"
    )
    job = JobSerializer(allow_null=True, help_text="Unfinished, or failed")
    fixed_size = serializers.CharField(
        allow_blank=True, help_text="circle 2.37 mm², field 3 of 10, 0.237 mm²; empty without one"
    )
    grid = GridFiguresSerializer(allow_null=True, help_text="The grid that a field belongs to")


class NucleiSerializer(serializers.Serializer[Any]):
    """Nuclei of a region in columns: one entry each in every list."""

    is_stale = serializers.BooleanField()
    x = serializers.ListField(child=serializers.FloatField(), help_text="Level-0 pixels")
    y = serializers.ListField(child=serializers.FloatField(), help_text="Level-0 pixels")
    radius = serializers.ListField(child=serializers.FloatField(), help_text="Level-0 pixels")
    bin = serializers.ListField(child=serializers.IntegerField(), help_text="0 to 3")


class QuantificationSettingsSerializer(serializers.ModelSerializer[QuantificationSettings]):
    """Thresholds of a lab, as optical densities and µm²."""

    class Meta:
        model = QuantificationSettings
        fields = ("lab", *QuantificationSettings.edited)
        read_only_fields = ("lab",)


class CaseCsvParamsSerializer(serializers.Serializer[Any]):
    """Query parameters of the table of a case."""

    canvas = serializers.UUIDField(required=False, help_text="Only regions of this image")


def figures_represent(roi_id: object, figures: RegionFigures) -> JsonObject:
    """Represent the figures of a region."""
    return {
        "roi": str(roi_id),
        "figures": FiguresSerializer(figures.row).data if figures.row else None,
        "is_stale": figures.is_stale,
        "job": JobSerializer(figures.job).data if figures.job else None,
        "fixed_size": figures.size.text if figures.size else "",
        "grid": GridFiguresSerializer(figures.grid).data if figures.grid else None,
    }


def nuclei_represent(row: RoiQuantification) -> JsonObject:
    """Represent nuclei without a serializer, which would be slow for a hundred thousand."""
    x, y, radius, bins = nuclei_of(row).T
    return {
        "is_stale": is_stale(row, row.roi),
        "x": [round(float(v), 1) for v in x],
        "y": [round(float(v), 1) for v in y],
        "radius": [round(float(v), 1) for v in radius],
        "bin": [int(v) for v in bins],
    }
