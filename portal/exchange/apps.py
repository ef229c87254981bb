"""App configuration."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from portal.core.models import Event


class ExchangeConfig(AppConfig):
    """Tessera's app that speaks the standards of other systems."""

    name = "portal.exchange"
    label = "exchange"

    def ready(self) -> None:
        """Put the export on the page of a case; hear of images that were prepared,
        and of imports that ended.
        """
        from portal.archive import extensions
        from portal.archive.models import Case
        from portal.core.events import subscribe
        from portal.exchange.views import case_section, import_action
        from portal.jobs.selectors import target_register

        target_register("case", lambda _: Case.objects.all())
        if case_section not in extensions.case_sections:
            extensions.case_sections.append(case_section)
        if import_action not in extensions.list_actions:
            extensions.list_actions.append(import_action)
        for name in ("slide.ready", "video.ready"):
            subscribe(name)(_ready)
        subscribe("job.ended")(_job_ended)


def _job_ended(event: Event) -> None:
    from portal.exchange.services import case_import_ended

    case_import_ended(payload=event.payload)


def _ready(event: Event) -> None:
    """Regions that came with a case wait for the pixels of their image."""
    from portal.retrieval.services import canvases_restored

    if event.lab_id is not None:
        canvas_id = uuid.UUID(event.payload["canvas_id"])
        canvases_restored(lab_id=event.lab_id, canvas_ids=[canvas_id])
