"""Figures of regions, and the thresholds by which a lab measures."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from portal.annotations.models import Roi
from portal.labs.models import LabOwned


class Staining(models.TextChoices):
    """Stains of a section, and where its marker is: as in ``ml.quantification.config``."""

    DAB_NUCLEAR = "dab-nuclear", "DAB in nuclei (Ki-67, ER, PR)"
    DAB = "dab", "DAB in cytoplasm or membranes"
    HE = "he", "H&E"


class QuantificationSettings(LabOwned):
    """Thresholds of a lab; without a row, the defaults apply."""

    edited: ClassVar[tuple[str, ...]] = (
        "weak_od",
        "moderate_od",
        "strong_od",
        "nucleus_od",
        "min_area_um2",
        "max_area_um2",
    )

    weak_od = models.FloatField(default=0.2, help_text="Mean DAB from which a nucleus is 1+")
    moderate_od = models.FloatField(default=0.4, help_text="Mean DAB from which it is 2+")
    strong_od = models.FloatField(default=0.6, help_text="Mean DAB from which it is 3+")
    nucleus_od = models.FloatField(default=0.1, help_text="Smallest stain density in a nucleus")
    min_area_um2 = models.FloatField(default=10.0, help_text="Smallest nucleus, in µm²")
    max_area_um2 = models.FloatField(default=400.0, help_text="Largest nucleus, in µm²")

    class Meta:
        verbose_name_plural = "quantification settings"
        constraints = (
            models.UniqueConstraint(fields=["lab"], name="quantification_settings_of_lab"),
        )


class RoiQuantification(LabOwned):
    """Newest figures of an ROI. They are those of the outline and pixel size that are named here.

    ``bin_counts`` are nuclei that are 0, 1+, 2+ and 3+; empty without a marker in nuclei.
    """

    roi = models.OneToOneField(Roi, on_delete=models.CASCADE, related_name="quantification")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    staining = models.CharField(max_length=12, choices=Staining.choices)
    config = models.JSONField(help_text="ml.quantification.config.QuantificationConfig")
    config_hash = models.CharField(max_length=16)
    roi_version = models.PositiveIntegerField()
    outline_hash = models.CharField(max_length=64, help_text="SHA-256 of the measured outline")
    mpp_x = models.FloatField()
    mpp_y = models.FloatField()
    measured_at = models.DateTimeField()
    area_mm2 = models.FloatField()
    tissue_mm2 = models.FloatField()
    mean_od = models.JSONField(help_text="Mean density over the tissue, by stain")
    positive_area_percent = models.FloatField(null=True)
    nucleus_count = models.PositiveIntegerField(null=True)
    nuclei_per_mm2 = models.FloatField(null=True)
    bin_counts = models.JSONField(default=list)
    positive_percent = models.FloatField(null=True)
    h_score = models.FloatField(null=True)
    nuclei_missing = models.CharField(max_length=20, blank=True)
    nuclei = models.BinaryField(
        default=b"", help_text="float32, little-endian: (N, 4) x, y, radius in level 0, and bin"
    )

    class Meta:
        ordering = ("measured_at", "id")
