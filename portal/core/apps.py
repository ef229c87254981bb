"""Loads every app's task module once the registry is ready, so that kinds are known everywhere."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class CoreConfig(AppConfig):
    """Base models, errors and the task registry; no domain words."""

    name = "portal.core"
    label = "core"

    def ready(self) -> None:
        """Import ``tasks`` of every app; they import torch only inside functions."""
        autodiscover_modules("tasks")
