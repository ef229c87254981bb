"""What the pages of similar cases ask of a hit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from django import template

from portal.annotations.models import Roi
from portal.retrieval.selectors import Hit
from portal.retrieval.thumbnails import Scale

register = template.Library()


@register.filter
def verdict_of(verdicts: Mapping[uuid.UUID, str], roi_id: uuid.UUID) -> str:
    """The person's mark on a region; "" where there is none."""
    return verdicts.get(roi_id, "")


@register.filter
def at_scale(hit: Hit, scale: Scale) -> bool:
    """True where the hit's picture can be drawn at the scale: its canvas knows the unit."""
    roi: Roi = hit.roi
    return scale.width_px(roi) is not None
