"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class MosaicsConfig(AppConfig):
    """Tessera's app for mosaics of videos."""

    name = "portal.mosaics"
    label = "mosaics"
