"""``manage.py reaper``: the role ``beat`` of the image."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from portal.jobs.worker.reaper import reap_forever


class Command(BaseCommand):
    """Rings unheard jobs and takes lost ones back, until stopped."""

    help = __doc__ or ""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGINT or SIGTERM."""
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        reap_forever(stop)
