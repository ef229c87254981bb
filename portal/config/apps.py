"""The project as an app: commands that need every other app (``serve``, ``demo``)."""

from __future__ import annotations

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    """Holds management commands; no models."""

    name = "portal.config"
    label = "config"
