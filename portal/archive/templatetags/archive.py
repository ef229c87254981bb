"""Template tags and filters of the archive: thumbnails, states, durations."""

from __future__ import annotations

from django import template

from portal.archive.models import Canvas, ItemState
from portal.archive.serializers.canvases import thumbnail_url
from portal.archive.storage import files as storage

register = template.Library()

PILLS = {
    ItemState.PREPARING: "pill--busy",
    ItemState.READY: "pill--ok",
    ItemState.FAILED: "pill--bad",
}


@register.filter
def thumbnail(canvas: Canvas | None) -> str:
    """Address of a canvas' thumbnail; empty if it has none."""
    return (thumbnail_url(canvas) or "") if canvas else ""


@register.filter
def state_pill(state: str) -> str:
    """The colour of an item's state."""
    return PILLS[ItemState(state)]


@register.filter
def clock(seconds: float) -> str:
    """``1:04`` or ``1:02:07``."""
    rounded = round(seconds)
    hours, seconds_left = divmod(rounded, 3600)
    minutes, last = divmod(seconds_left, 60)
    return f"{hours}:{minutes:02d}:{last:02d}" if hours else f"{minutes}:{last:02d}"


@register.filter
def file_size(size_bytes: int) -> str:
    """``1.5 GiB``."""
    return storage.human_size(size_bytes)
