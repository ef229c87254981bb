"""What every page needs to know of the person's labs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from portal.labs import selectors
from portal.labs.requests import lab_chosen_by


def navigation(request: HttpRequest) -> dict[str, Any]:
    """``memberships`` of the person signed in, with their labs, lazily; and the lab chosen."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"memberships": []}
    memberships, chosen = selectors.memberships_of(user), lab_chosen_by(request)
    return {
        "memberships": memberships,
        "current_lab": lambda: next((m.lab for m in memberships if m.lab.slug == chosen), None),
    }
