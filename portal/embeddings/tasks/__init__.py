"""Celery tasks; only they use torch, and only inside functions."""

from portal.embeddings.tasks import embedding, indexes, lab_encoders  # noqa: F401 - registers them
