"""Whether a page or a part of it is asked for."""

from __future__ import annotations

from django.http import HttpRequest


def wants_part(request: HttpRequest) -> bool:
    """True if htmx will put the answer into a page that is already there."""
    details = getattr(request, "htmx", None)
    return bool(details) and not getattr(details, "boosted", False)
