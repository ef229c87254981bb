"""What views and API modules need of a request."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from rest_framework.request import Request

from portal.labs.models import User

UUID_REGEX = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


CURRENT_LAB = "lab"
"""Where the session keeps the slug of the lab that was chosen."""


def lab_chosen_by(request: HttpRequest) -> str | None:
    """The slug of the lab chosen in this browser session, or None for all of the person's labs."""
    slug: str | None = request.session.get(CURRENT_LAB)
    return slug


def user_of(request: HttpRequest | Request) -> User:
    """The person signed in; decorators and permission classes let nobody else through."""
    return cast(User, request.user)
