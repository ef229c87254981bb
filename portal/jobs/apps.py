"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Tessera's app for the job ledger."""

    name = "portal.jobs"
    label = "jobs"

    def ready(self) -> None:
        """Register the chore."""
        from portal.core.housekeeping import daily
        from portal.jobs.services import signs_prune

        daily("signs of workers", signs_prune)
