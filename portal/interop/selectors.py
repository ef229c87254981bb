"""Reads shared by several standards."""

from __future__ import annotations

import uuid

from portal.archive.models import Canvas, Case
from portal.archive.selectors.canvases import canvas_list
from portal.archive.selectors.cases import case_get
from portal.labs.models import User

MAX_CANVASES_PER_CASE = 500  # a manifest of 600 kB; the list of canvases over REST has all


def case_canvases(*, user: User, case_id: uuid.UUID) -> tuple[Case, list[Canvas]]:
    """A case and its canvases, oldest first."""
    case = case_get(user=user, case_id=case_id)
    canvases = canvas_list(user=user).filter(case=case)
    canvases = canvases.order_by("created_at", "id")
    return case, list(canvases[:MAX_CANVASES_PER_CASE])
