"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class AnnotationsConfig(AppConfig):
    """Tessera's app for labels and regions of interest."""

    name = "portal.annotations"
    label = "annotations"
