"""Template context of every page: the user's labs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from portal.labs import selectors
from portal.labs.models import Role
from portal.labs.requests import lab_chosen_by


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Template context of the navigation: memberships, chosen lab, whether the user manages one."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"memberships": []}
    memberships, chosen = selectors.memberships_of(user), lab_chosen_by(request)
    return {
        "memberships": memberships,
        "current_lab": lambda: next((m.lab for m in memberships if m.lab.slug == chosen), None),
        "manages_a_lab": lambda: any(Role(m.role).rank >= Role.MANAGER.rank for m in memberships),
    }
