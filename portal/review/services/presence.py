"""Presence: signs of life of open pages."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from portal.archive.models import Canvas
from portal.labs.models import Role, User
from portal.labs.rules import require_role
from portal.review.models import CanvasPresence
from portal.review.selectors.live import AWAY_S


def presence_note(
    *,
    canvas: Canvas,
    user: User,
    tab: uuid.UUID,
    view: Sequence[float] | None = None,
    roi_id: uuid.UUID | None = None,
) -> None:
    """Record that a page is open, and its view; remove rows of closed pages.

    Raises:
        ForbiddenError: not a member of the canvas' lab; guests are not shown to it.
    """
    require_role(user, canvas.lab_id, at_least=Role.VIEWER)
    now = timezone.now()
    fields = {"seen_at": now, "view": list(view) if view else None, "roi_id": roi_id}
    own_rows = CanvasPresence.objects.filter(canvas=canvas, user=user, tab=tab)
    if own_rows.update(**fields):
        return
    CanvasPresence.objects.filter(seen_at__lt=now - timedelta(seconds=4 * AWAY_S)).delete()
    CanvasPresence.objects.get_or_create(
        canvas=canvas, user=user, tab=tab, defaults=fields | {"lab_id": canvas.lab_id}
    )


def presence_end(*, canvas: Canvas, user: User, tab: uuid.UUID) -> None:
    """Record that a page was closed. Raises ``ForbiddenError`` as ``presence_note`` does."""
    require_role(user, canvas.lab_id, at_least=Role.VIEWER)
    CanvasPresence.objects.filter(canvas=canvas, user=user, tab=tab).delete()
