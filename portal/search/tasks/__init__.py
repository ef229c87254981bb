"""Celery tasks; only they use torch, and only inside functions."""

from portal.search.tasks import explanations, queries, reports  # noqa: F401 - registers them
