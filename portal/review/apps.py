"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    """Tessera's app for the review of regions of interest."""

    name = "portal.review"
    label = "review"
