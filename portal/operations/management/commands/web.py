"""``manage.py web``: one web process, as ``serve`` starts several."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string

from portal.core import environment
from portal.operations.web.protocol import ClientLimits
from portal.operations.web.server import run


class Command(BaseCommand):
    """Serve the portal's pages, REST and tiles."""

    help = __doc__ or ""
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until stopped by a signal."""
        # Behind a proxy all clients have its address; the proxy limits them.
        is_proxied = environment.number("TESSERA_TRUSTED_PROXIES", default=0, minimum=0) > 0
        per_address = environment.number("TESSERA_CONNECTIONS_PER_ADDRESS", default=500, minimum=0)
        limits = ClientLimits(per_address=0 if is_proxied else int(per_address))
        application = import_string(settings.ASGI_APPLICATION)
        run(application, host=options["host"], port=options["port"], limits=limits)
