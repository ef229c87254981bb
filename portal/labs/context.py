"""What every page needs to know of the person's labs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from portal.labs import selectors


def navigation(request: HttpRequest) -> dict[str, Any]:
    """``memberships`` of the person signed in, with their labs, lazily."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"memberships": []}
    return {"memberships": selectors.memberships_of(user)}
