"""Template context of every page: the unread notifications."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from portal.inbox.selectors import unread_count


def navigation(request: HttpRequest) -> dict[str, Any]:
    """``inbox_unread``: number of unread notifications, counted where a page shows it."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"inbox_unread": 0}
    return {"inbox_unread": lambda: unread_count(user)}
