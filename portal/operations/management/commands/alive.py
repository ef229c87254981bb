"""``manage.py alive``: health check of processes that serve no requests."""

from __future__ import annotations

import socket
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from portal.jobs.selectors.jobs import reapers_alive, workers_alive


class Command(BaseCommand):
    """Exit with 0 if a worker or the reaper of this machine (or container) is alive."""

    help = "Check whether a worker or the reaper of this machine or container has reported lately."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Look for recent heartbeats of celery@HOST or reaper@HOST:PID in the database."""
        host = socket.gethostname()
        on_host = Q(name__endswith=f"@{host}") | Q(name__contains=f"@{host}:")
        if not any(rows.filter(on_host).exists() for rows in (workers_alive(), reapers_alive())):
            raise CommandError("Nothing on this machine has reported lately.")
