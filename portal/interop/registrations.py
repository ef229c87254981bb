"""Registrations with lower apps."""

from __future__ import annotations

from portal.archive.extensions import PAGE_PARTS, Slot
from portal.archive.models import Case
from portal.interop.rocrate.views import case_section, import_action, selection_action
from portal.jobs.selectors.jobs import JOB_TARGETS

JOB_TARGETS.register("case")(lambda _: Case.objects.all())
PAGE_PARTS.register(Slot.CASE_SECTION)(case_section)
PAGE_PARTS.register(Slot.LIST_ACTION)(import_action)
PAGE_PARTS.register(Slot.SELECTION_ACTION)(selection_action)
