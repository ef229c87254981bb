"""Celery tasks; only they use torch, and only inside functions."""

from portal.model_training.tasks import encoders, metrics  # noqa: F401 - registers them
