"""What every page needs to know of the person's work."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from portal.reading.selectors import work_open_count


def navigation(request: HttpRequest) -> dict[str, Any]:
    """``work_open``: how much the person signed in has to do, counted where a page shows it."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"work_open": 0}
    return {"work_open": lambda: work_open_count(user)}
