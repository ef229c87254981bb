"""App configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from portal.core.models import Event


class ArchiveConfig(AppConfig):
    """Tessera's app for cases, assets, canvases."""

    name = "portal.archive"
    label = "archive"

    def ready(self) -> None:
        """Hear of jobs that ended, so that an item whose ingest failed says why; sweep daily.

        Tell the audit log what its cases are called.
        """
        from portal.archive.models import Canvas, Slide, Video
        from portal.archive.selectors import case_names, uploads_named
        from portal.audit.naming import namer_register
        from portal.core.events import subscribe
        from portal.core.housekeeping import daily
        from portal.jobs.selectors import target_register

        subscribe("job.ended")(_job_ended)
        daily("archive sweep", _sweep)
        namer_register("case", case_names)
        target_register("canvas", lambda _: Canvas.objects.all())
        target_register("slide", lambda _: Slide.objects.all())
        target_register("upload", uploads_named)
        target_register("video", lambda _: Video.objects.all())


def _job_ended(event: Event) -> None:
    from portal.archive.services import item_job_ended, upload_job_ended

    item_job_ended(payload=event.payload)
    upload_job_ended(payload=event.payload)


def _sweep() -> object:
    from portal.archive.services import storage_sweep

    return storage_sweep()
