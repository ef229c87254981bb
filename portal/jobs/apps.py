"""App configuration."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class JobsConfig(AppConfig):
    """Tessera's app for jobs."""

    name = "portal.jobs"
    label = "jobs"

    def ready(self) -> None:
        """Register the Celery tasks of all kinds of jobs (``tasks`` of the apps)."""
        from portal.jobs.worker.celery_tasks import register_celery_tasks

        autodiscover_modules("tasks")
        register_celery_tasks()
