"""``manage.py reaper``: run the reaper, the role ``beat`` of the image."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from portal.jobs.worker.reaper import reap_forever


class Command(BaseCommand):
    """Requeue lost jobs, send unclaimed ones again and run regular chores until stopped."""

    help = __doc__ or ""
    requires_system_checks = ()  # they load every page, which this process never shows

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGINT or SIGTERM."""
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        reap_forever(stop)
