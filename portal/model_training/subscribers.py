"""Event handlers: clean up after trainings."""

from __future__ import annotations

from portal.core.events import subscribe
from portal.core.models import Event
from portal.jobs.events import JobEvent
from portal.model_training.services.folders import training_folder_clean_up


@subscribe(JobEvent.ENDED)
def clean_up_after_training(event: Event) -> None:
    """Remove the working folder of a failed or cancelled training."""
    training_folder_clean_up(payload=event.payload)
