"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class AnnotationsConfig(AppConfig):
    """Tessera's app for labels and regions of interest."""

    name = "portal.annotations"
    label = "annotations"

    def ready(self) -> None:
        """Jobs name no region that is deleted; imports whose process is gone are taken back."""
        from portal.annotations.models import Roi
        from portal.annotations.services.imports import imports_lost_undo
        from portal.core.housekeeping import each_pass
        from portal.jobs.selectors import target_register

        target_register("roi", lambda _: Roi.objects.live())
        each_pass("imports", imports_lost_undo)
