"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class QuantificationConfig(AppConfig):
    """Nuclei, stained area and stain means of regions, and the thresholds of labs."""

    name = "portal.quantification"
    label = "quantification"
