"""The Celery application. Its messages start jobs, whose rows decide (see portal/jobs)."""

from __future__ import annotations

import os

from celery import Celery
from celery.signals import setup_logging
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["filesystem"] = "portal.jobs.worker.workarounds:Transport"

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings.development")
# Django's checks are for ``make check`` and ``serve``: they load every page, which no worker needs.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("tessera")
app.config_from_object("django.conf:settings", namespace="CELERY")


@setup_logging.connect
def _keep_django_logging(**_: object) -> None:
    """Keep Django's LOGGING; without a receiver Celery would replace it."""
