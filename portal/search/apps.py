"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class SearchConfig(AppConfig):
    """Similar cases, queries, explanations and reports."""

    name = "portal.search"
    label = "search"
