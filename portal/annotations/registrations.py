"""Registrations of annotations with lower apps."""

from __future__ import annotations

from portal.annotations.models import Roi
from portal.annotations.selectors.rois import roi_counts
from portal.annotations.selectors.trash import (
    rois_of_trash_entries,
    video_events_of_trash_entries,
)
from portal.annotations.services.imports import imports_lost_undo
from portal.annotations.services.trash import ROI_PURGER, VIDEO_EVENT_PURGER
from portal.annotations.views.trash import trash_tabs
from portal.archive.extensions import PAGE_PARTS, Slot
from portal.archive.selectors.canvases import CANVAS_COUNTERS
from portal.archive.selectors.trash import TRASH_COUNTERS
from portal.core.housekeeping import daily, each_pass
from portal.jobs.selectors.jobs import JOB_TARGETS

JOB_TARGETS.register("roi")(lambda _: Roi.objects.live())
each_pass("imports")(imports_lost_undo)
daily("trash of ROIs")(ROI_PURGER.purge_due)
daily("trash of video events")(VIDEO_EVENT_PURGER.purge_due)
TRASH_COUNTERS.register("region")(rois_of_trash_entries)
TRASH_COUNTERS.register("event")(video_events_of_trash_entries)
CANVAS_COUNTERS.register("region")(roi_counts)
PAGE_PARTS.register(Slot.TRASH_TAB)(trash_tabs)
