"""Clients of the portal, signed in."""

from __future__ import annotations

from typing import Any

from django.test import Client


def client_of(user: Any) -> Client:
    """Django test client of a user."""
    client = Client()
    client.force_login(user)
    return client
