"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Tessera's app for the job ledger."""

    name = "portal.jobs"
    label = "jobs"
