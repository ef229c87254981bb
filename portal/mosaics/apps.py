"""App configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from portal.core.models import Event


class MosaicsConfig(AppConfig):
    """Tessera's app for mosaics of videos."""

    name = "portal.mosaics"
    label = "mosaics"

    def ready(self) -> None:
        """Hear of jobs that ended; add mosaics to the archive's pages."""
        from portal.archive import extensions
        from portal.core.events import subscribe
        from portal.mosaics.views import mosaics as views

        subscribe("job.ended")(_job_ended)
        if views.case_section not in extensions.case_sections:
            extensions.case_sections.append(views.case_section)
            extensions.video_actions.append(views.video_action)
            extensions.canvas_actions.append(views.canvas_action)


def _job_ended(event: Event) -> None:
    from portal.mosaics.services import followup_job_ended, mosaic_job_ended

    mosaic_job_ended(payload=event.payload)
    followup_job_ended(payload=event.payload)
