"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class LabsConfig(AppConfig):
    """App of labs, memberships and tokens."""

    name = "portal.labs"
    label = "labs"
