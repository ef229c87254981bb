"""``manage.py web``: one web process; ``serve`` starts them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from portal.config import environment
from portal.config.web.protocol import ClientLimits
from portal.config.web.server import run


class Command(BaseCommand):
    """Serves the portal's pages, REST and tiles."""

    help = __doc__ or ""
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until told to stop."""
        from portal.config.asgi import application

        # Behind a proxy everybody comes from its address; there the proxy counts.
        is_proxied = environment.number("TESSERA_TRUSTED_PROXIES", default=0, minimum=0) > 0
        most = environment.number("TESSERA_CONNECTIONS_PER_ADDRESS", default=500, minimum=0)
        limits = ClientLimits(per_address=0 if is_proxied else int(most))
        run(application, host=options["host"], port=options["port"], limits=limits)
