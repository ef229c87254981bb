"""Registrations of mosaics with lower apps."""

from __future__ import annotations

from portal.archive.extensions import PAGE_PARTS, Slot
from portal.archive.models import Canvas
from portal.archive.selectors.trash import TRASH_COUNTERS
from portal.archive.services.items import TITLE_HANDLERS
from portal.jobs.selectors.jobs import JOB_TARGETS
from portal.mosaics.models import Followup, Mosaic
from portal.mosaics.selectors.mosaics import mosaics_in_trash
from portal.mosaics.services.followups import followups_follow_title
from portal.mosaics.views.mosaics import canvas_action, case_section, video_action

JOB_TARGETS.register("mosaic")(lambda _: Mosaic.objects.all())
JOB_TARGETS.register("followup")(lambda _: Followup.objects.all())
TITLE_HANDLERS.register(Canvas)(followups_follow_title)
PAGE_PARTS.register(Slot.CASE_SECTION)(case_section)
PAGE_PARTS.register(Slot.VIDEO_ACTION)(video_action)
PAGE_PARTS.register(Slot.CANVAS_ACTION)(canvas_action)
TRASH_COUNTERS.register("mosaic")(mosaics_in_trash)
