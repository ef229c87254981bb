"""App configuration."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class LabsConfig(AppConfig):
    """Tessera's app for labs, memberships and tokens."""

    name = "portal.labs"
    label = "labs"

    def ready(self) -> None:
        """Teach the OpenAPI schema our way to sign in."""
        import_module("portal.labs.schema")
