"""Registrations of search with lower apps."""

from __future__ import annotations

from portal.archive.extensions import PAGE_PARTS, Slot
from portal.archive.models import Canvas
from portal.archive.services.items import TITLE_HANDLERS
from portal.core.housekeeping import daily
from portal.jobs.selectors.jobs import JOB_TARGETS
from portal.search.models import Query
from portal.search.services.canvas_titles import canvas_title_update
from portal.search.services.explanations import explanations_sweep
from portal.search.services.queries import queries_sweep
from portal.search.views.queries import canvas_action
from portal.search.views.reports import case_section

JOB_TARGETS.register("query")(lambda _: Query.objects.all())
TITLE_HANDLERS.register(Canvas)(canvas_title_update)
PAGE_PARTS.register(Slot.CANVAS_ACTION)(canvas_action)
PAGE_PARTS.register(Slot.CASE_SECTION)(case_section)
daily("queries")(queries_sweep)
daily("explanations")(explanations_sweep)
