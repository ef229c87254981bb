"""``manage.py serve``: run web, worker and reaper as one process tree, without another server."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from portal.operations.doctor.pages import front_end_problem
from portal.operations.processes import free_port, is_listening, reaper, web, worker
from portal.operations.supervision import ProcessTree

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - as the image listens, behind its proxy


class Command(BaseCommand):
    """Serve the portal until Ctrl-C."""

    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--reload", action="store_true", help="for developers")
        parser.add_argument("--web-only", action="store_true", help="no worker and no reaper")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start all, wait, stop all."""
        host, first_port = options["host"], options["port"]
        port = free_port(host, first_port)
        if port != first_port:
            self.stdout.write(f"Port {first_port} is taken; using {port} instead.")
        reload = options["reload"]
        processes = web(host, port, reload=reload)
        if not options["web_only"]:
            processes += [worker(reload=reload), reaper()]
        if problem := front_end_problem():
            self.stderr.write(problem)
        where = {"url": f"http://{host}:{port}"} if _is_reached_there(host) else {}
        call_command("first_run", stdout=self.stdout, **where)
        self.stdout.flush()
        connections.close_all()  # this process only supervises the others
        try:
            with ProcessTree(processes, say=self._say) as tree:
                code = tree.wait_until(lambda: is_listening(host, port))
                if code is None:
                    self._say(f"Tessera is at http://{host}:{port}  (Ctrl-C stops it)")
                    code = tree.wait()
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
            return
        raise CommandError(
            "A process of the portal cannot be kept running; see its lines above.", returncode=code
        )

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # also where the output is a file


def _is_reached_there(host: str) -> bool:
    """Return whether people reach the portal at this address, without a proxy for TLS or host
    names.
    """
    return host not in EVERYWHERE and not settings.SECURE_SSL_REDIRECT
