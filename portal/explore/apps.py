"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ExploreConfig(AppConfig):
    """Map of a lab's regions, near-duplicates, label outliers and similar regions of a slide."""

    name = "portal.explore"
    label = "explore"
