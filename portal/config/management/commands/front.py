"""``manage.py front``: one front process; ``serve`` starts them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from portal.config import environment
from portal.config.front.limits import FrontLimits
from portal.config.front.server import run


class Command(BaseCommand):
    """Answers tiles and hands all else to the API processes."""

    help = __doc__ or ""
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to listen, and where the API is."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, required=True)
        parser.add_argument("--api", required=True, help="UNIX socket of the API processes")
        parser.add_argument("--calls", type=int, default=FrontLimits().calls)

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until told to stop."""
        # Behind a proxy everybody comes from its address; there the proxy counts.
        is_proxied = environment.number("TESSERA_TRUSTED_PROXIES", default=0, minimum=0) > 0
        most = environment.number("TESSERA_CONNECTIONS_PER_ADDRESS", default=500, minimum=0)
        calls = options["calls"]
        limits = FrontLimits(
            per_address=0 if is_proxied else int(most), calls=calls, bulk=max(1, calls // 2)
        )
        run(
            host=options["host"],
            port=options["port"],
            api=options["api"],
            limits=limits,
            access_log=environment.flag("TESSERA_ACCESS_LOG", default=False),
        )
