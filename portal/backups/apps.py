"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class BackupsConfig(AppConfig):
    """App for backups, their restoration, and moves of an installation."""

    name = "portal.backups"
    label = "backups"
