"""Helpers for requests in views and API modules."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from rest_framework.request import Request

from portal.labs.models import User

UUID_REGEX = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


CURRENT_LAB = "lab"
"""Session key of the chosen lab's slug."""


def lab_chosen_by(request: HttpRequest) -> str | None:
    """Slug of the lab that the user has chosen, or None for all of the user's labs."""
    slug: str | None = request.session.get(CURRENT_LAB)
    return slug


def user_of(request: HttpRequest | Request) -> User:
    """Authenticated user; decorators and permission classes refuse anonymous requests."""
    return cast(User, request.user)
