"""Figures of agreement in templates."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def figure(value: float | None) -> str:
    """Two decimals; a dash where there is nothing to say."""
    return "–" if value is None else f"{value:.2f}"


@register.filter
def bar(percent: float, full: float) -> float:
    """The length of a bar whose full length is given."""
    return round(percent * full / 100, 1)
