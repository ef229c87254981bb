"""Figures of agreement in templates."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def figure(value: float | None) -> str:
    """Format with two decimals; a dash for None."""
    return "–" if value is None else f"{value:.2f}"


@register.filter
def bar(percent: float, full: float) -> float:
    """Length of a bar with the given full length."""
    return round(percent * full / 100, 1)
