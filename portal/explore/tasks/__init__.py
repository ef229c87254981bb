"""Celery tasks; only they use torch, and only inside functions."""

from portal.explore.tasks import maps, tissue_samples  # noqa: F401 - registers them
