"""Filters and tags of the pages of similar cases."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.annotations.models import Roi
from portal.archive.models import Canvas
from portal.search.selectors.hits import Hit
from portal.search.selectors.reports import bar_length, length_text
from portal.search.selectors.similar_cases import SimilarQuery
from portal.search.thumbnails.regions import HEIGHT_PX, WIDTH_PX, Scale

register = template.Library()


@register.filter
def verdict_of(verdicts: Mapping[uuid.UUID, str], roi_id: uuid.UUID) -> str:
    """Verdict of the person on a region; empty without one."""
    return verdicts.get(roi_id, "")


@register.filter
def close_and_others(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Groups of hits in their order: first those not known to be far, then the others."""
    groups = (
        [hit for hit in hits if hit.is_close is not False],
        [hit for hit in hits if hit.is_close is False],
    )
    return [group for group in groups if group]


@register.filter
def at_scale(hit: Hit, scale: Scale) -> bool:
    """True if the canvas of the hit has the unit of the scale."""
    roi: Roi = hit.roi
    return scale.width_px(roi) is not None


@register.filter
def scale_unknown_for(canvas: Canvas, query: SimilarQuery) -> bool:
    """True if the search had to assume the scale of a canvas."""
    return query.assumes_scale_of(canvas)


@register.simple_tag
def scale_bar(width_um: float) -> SafeString:
    """A scale bar in the corner of a picture (4:3) that is ``width_um`` wide."""
    length_um = bar_length(width_um)
    length = WIDTH_PX * length_um / width_um
    return format_html(
        '<svg class="card-scale" viewBox="0 0 {} {}" role="img" aria-label="Scale bar: {}">'
        '<rect x="{}" y="{}" width="{}" height="4"></rect>'
        '<text x="{}" y="{}">{}</text></svg>',
        WIDTH_PX,
        HEIGHT_PX,
        length_text(length_um),
        f"{WIDTH_PX - length - 10:.1f}",
        HEIGHT_PX - 14,
        f"{length:.1f}",
        f"{WIDTH_PX - length / 2 - 10:.1f}",
        HEIGHT_PX - 20,
        length_text(length_um),
    )
