"""Project configuration. Importing it makes our Celery application the current one."""

from portal.config.celery import app as celery_app

__all__ = ("celery_app",)
