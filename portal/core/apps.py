"""Imports the modules of every app by which it adds to others, once the app registry is ready."""

from __future__ import annotations

import gc

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class CoreConfig(AppConfig):
    """Base models, errors and the task registry; no domain words."""

    name = "portal.core"
    label = "core"

    def ready(self) -> None:
        """Find handlers of signals and events, and registrations, of all apps.

        Collects garbage again, which ``portal.config.settings.base`` has stopped; what is imported
        by now is left out.
        """
        autodiscover_modules("receivers", "subscribers", "registrations")
        gc.freeze()
        gc.enable()
