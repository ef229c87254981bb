"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    """App of the review of regions of interest."""

    name = "portal.review"
    label = "review"
