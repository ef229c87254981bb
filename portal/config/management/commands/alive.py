"""``manage.py alive``: the health check of roles that answer no request."""

from __future__ import annotations

import socket
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from portal.jobs.selectors import reapers_alive, workers_alive


class Command(BaseCommand):
    """Exit 0 where a worker or the reaper of this machine (or container) has reported lately."""

    help = "Check whether a worker or the reaper of this machine or container has reported lately."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """By the signs of life in the database: celery@HOST, reaper@HOST:PID."""
        host = socket.gethostname()
        ours = Q(name__endswith=f"@{host}") | Q(name__contains=f"@{host}:")
        if not any(signs.filter(ours).exists() for signs in (workers_alive(), reapers_alive())):
            raise CommandError("Nothing on this machine has reported lately.")
