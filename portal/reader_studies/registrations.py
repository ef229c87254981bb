"""Registrations of reader studies: rows hidden from blinded readers, and buttons of pages."""

from __future__ import annotations

from portal.archive.extensions import PAGE_PARTS, Slot
from portal.reader_studies.blinding import blinding_register
from portal.reader_studies.views.work import canvas_action, selection_action

blinding_register()
PAGE_PARTS.register(Slot.CANVAS_ACTION)(canvas_action)
PAGE_PARTS.register(Slot.SELECTION_ACTION)(selection_action)
