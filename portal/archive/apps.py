"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ArchiveConfig(AppConfig):
    """Tessera's app for cases, assets, canvases."""

    name = "portal.archive"
    label = "archive"
