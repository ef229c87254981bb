"""``manage.py reaper``: run the reaper, the role ``beat`` of the image."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from portal.core.housekeeping import beside_start
from portal.jobs.worker.reaper import reap_forever

STOP_WAIT_S = 5.0  # seconds; what is cut off then goes on elsewhere, as after a kill


class Command(BaseCommand):
    """Rings unheard jobs, takes lost ones back and does the regular chores, until stopped."""

    help = __doc__ or ""
    requires_system_checks = ()  # they load every page, which this process never shows

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGINT or SIGTERM."""
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        threads = beside_start(stop)
        reap_forever(stop)
        for thread in threads:
            thread.join(STOP_WAIT_S)
