"""Distinguish requests for a page from requests for a part of it."""

from __future__ import annotations

from django.http import HttpRequest


def wants_part(request: HttpRequest) -> bool:
    """Return whether htmx inserts the response into the current page."""
    details = getattr(request, "htmx", None)
    return bool(details) and not getattr(details, "boosted", False)
