"""Template context of every page: the user's assigned work."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from portal.reader_studies.selectors.work import work_open_count


def navigation(request: HttpRequest) -> dict[str, Any]:
    """``work_open``: number of the user's open assignments, counted only if a page shows it."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"work_open": 0}
    return {"work_open": lambda: work_open_count(user)}
