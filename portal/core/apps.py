"""Loads every app's task module once the registry is ready, so that kinds are known everywhere."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class CoreConfig(AppConfig):
    """Base models, errors and the task registry; no domain words."""

    name = "portal.core"
    label = "core"

    def ready(self) -> None:
        """Register chores, import ``tasks`` of all apps; those import torch only in functions."""
        from portal.core.api.answers import answers_sweep
        from portal.core.disk import reserve_keep
        from portal.core.housekeeping import daily, each_pass

        daily("kept answers", answers_sweep)
        each_pass("disk reserve", reserve_keep)
        autodiscover_modules("tasks")
