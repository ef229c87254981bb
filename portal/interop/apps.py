"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class InteropConfig(AppConfig):
    """Standards of other systems."""

    name = "portal.interop"
    label = "interop"
