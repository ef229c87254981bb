"""Registrations of the archive with lower apps."""

from __future__ import annotations

from portal.archive.models import Canvas, Slide, Video
from portal.archive.selectors.cases import case_names
from portal.archive.selectors.trash import TRASH_COUNTERS, slides_in_trash, videos_in_trash
from portal.archive.selectors.uploads import uploads_named
from portal.archive.services.sweep import storage_sweep
from portal.archive.services.trash import trash_purge_due
from portal.audit.naming import NAMERS
from portal.core.housekeeping import daily
from portal.jobs.selectors.jobs import JOB_TARGETS

daily("archive sweep")(storage_sweep)
daily("trash")(trash_purge_due)
TRASH_COUNTERS.register("slide")(slides_in_trash)
TRASH_COUNTERS.register("video")(videos_in_trash)
NAMERS.register("case")(case_names)
JOB_TARGETS.register("canvas")(lambda _: Canvas.objects.all())
JOB_TARGETS.register("slide")(lambda _: Slide.objects.all())
JOB_TARGETS.register("upload")(uploads_named)
JOB_TARGETS.register("video")(lambda _: Video.objects.all())
