"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    """App of the commands, health, metrics and web server of a portal."""

    name = "portal.operations"
    label = "operations"
