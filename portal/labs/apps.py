"""App configuration."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class LabsConfig(AppConfig):
    """Tessera's app for labs, memberships and tokens."""

    name = "portal.labs"
    label = "labs"

    def ready(self) -> None:
        """Listen to allauth."""
        import_module("portal.labs.receivers")
        from portal.core.housekeeping import daily
        from portal.labs.services import attempts_sweep, sessions_sweep

        daily("attempts to sign in", attempts_sweep)
        daily("sessions", sessions_sweep)
