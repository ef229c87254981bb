"""Loads every app's task module once the registry is ready, so that kinds are known everywhere."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class CoreConfig(AppConfig):
    """Base models, errors and the task registry; no domain words."""

    name = "portal.core"
    label = "core"

    def ready(self) -> None:
        """Keep a reserve. Import ``tasks`` of every app; they import torch only in functions."""
        from portal.core.disk import reserve_keep
        from portal.core.housekeeping import each_pass

        each_pass("disk reserve", reserve_keep)
        autodiscover_modules("tasks")
