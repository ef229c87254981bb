"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class AnnotationsConfig(AppConfig):
    """Tessera's app for labels and regions of interest."""

    name = "portal.annotations"
    label = "annotations"

    def ready(self) -> None:
        """Jobs name no region that is deleted."""
        from portal.annotations.models import Roi
        from portal.jobs.selectors import target_register

        target_register("roi", Roi.objects.live)
