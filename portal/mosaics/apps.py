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
        from portal.archive.services import canvas_titled
        from portal.core.events import subscribe
        from portal.jobs.selectors import target_register
        from portal.mosaics.models import Followup, Mosaic
        from portal.mosaics.services import followups_follow_title
        from portal.mosaics.views import mosaics as views

        subscribe("job.ended")(_job_ended)
        subscribe("bin.put")(_binned)
        subscribe("item.renamed")(_renamed)
        subscribe("bin.restored")(_restored)
        subscribe("bin.purging")(_purging)
        target_register("mosaic", lambda _: Mosaic.objects.all())
        target_register("followup", lambda _: Followup.objects.all())
        if views.case_section not in extensions.case_sections:
            canvas_titled.append(followups_follow_title)
            extensions.case_sections.append(views.case_section)
            extensions.video_actions.append(views.video_action)
            extensions.canvas_actions.append(views.canvas_action)


def _renamed(event: Event) -> None:
    """A mosaic is called by its video."""
    if event.payload["item_kind"] != "video":
        return
    from portal.archive.models import Video
    from portal.mosaics.services import mosaics_follow_title

    mosaics_follow_title(Video.objects.get(pk=event.payload["item_id"]))


def _binned(event: Event) -> None:
    from portal.mosaics.services import mosaics_binned

    mosaics_binned(payload=event.payload)


def _restored(event: Event) -> None:
    from portal.mosaics.services import mosaics_restored

    mosaics_restored(payload=event.payload)


def _purging(event: Event) -> None:
    from portal.mosaics.services import mosaics_purge

    mosaics_purge(payload=event.payload)


def _job_ended(event: Event) -> None:
    from portal.mosaics.services import followup_job_ended, mosaic_job_ended

    mosaic_job_ended(payload=event.payload)
    followup_job_ended(payload=event.payload)
