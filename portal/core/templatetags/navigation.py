"""Main navigation: the section of a page."""

from __future__ import annotations

from django import template

register = template.Library()

_LAB_PAGES = ("/lab/", "/trash/", "/quarantine/")
_SECTIONS = {
    "archive": "cases",
    "annotations": "cases",
    "interop": "cases",
    "search": "search",
    "explore": "search",
    "mosaics": "mosaics",
    "reader_studies": "work",
    "review": "work",
}


@register.simple_tag(takes_context=True)
def section(context: template.Context) -> str:
    """Section of the main navigation that holds the page; empty for none.

    Returns:
        "cases", "search", "mosaics", "work", "lab" or "".
    """
    request = context.get("request")
    if request is None or request.resolver_match is None:
        return ""
    if request.path.startswith(_LAB_PAGES):
        return "lab"
    return _SECTIONS.get(request.resolver_match.namespace, "")
