"""``manage.py serve``: web, worker and reaper as one process tree, with no other server."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.config.processes import ProcessTree, free_port, reaper, web, worker


class Command(BaseCommand):
    """Serves the portal until Ctrl-C."""

    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to listen."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--reload", action="store_true", help="for developers")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start all, wait, stop all."""
        host, wanted = options["host"], options["port"]
        port = free_port(host, wanted)
        if port != wanted:
            self.stdout.write(f"Port {wanted} is taken; using {port} instead.")
        reload = options["reload"]
        processes = [web(host, port, reload=reload), worker(reload=reload), reaper()]
        try:
            with ProcessTree(processes, say=self.stdout.write) as tree:
                self.stdout.write(f"Tessera is at http://{host}:{port}  (Ctrl-C stops it)")
                code = tree.wait()
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
            return
        raise CommandError(
            "A part of the portal ended by itself; see its lines above.", returncode=code
        )
