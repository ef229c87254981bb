"""``manage.py demo``: prepare demo data end to end, then serve. A second run adds nothing."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from portal.operations.demo.material import development_material, sample_material
from portal.operations.demo.people import cast
from portal.operations.demo.report import report, sign_in
from portal.operations.demo.run import DemoResult, demo_run
from portal.operations.processes import free_port, reaper, web, worker
from portal.operations.supervision import ProcessTree

HOST, PORT = "127.0.0.1", 8000


class Command(BaseCommand):
    """Run the main workflow on real data."""

    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("--exit", action="store_true", help="do everything except serving")
        parser.add_argument("--port", type=int, default=PORT)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prepare, run, report, serve."""
        began = time.monotonic()
        call_command("migrate", interactive=False, verbosity=0)
        people = cast()
        processes = [worker(), reaper()]
        port = 0
        if not options["exit"]:
            port = free_port(HOST, options["port"])
            if port != options["port"]:
                self.stdout.write(f"Port {options['port']} is taken; using {port} instead.")
            processes = [*web(HOST, port, reload=False), *processes]
        try:
            logs = settings.TESSERA_STORAGE.parent / "log"
            with ProcessTree(processes, say=self._say, log_folder=logs) as tree:
                outcome = self._run(people)
                outcome.seconds["all"] = time.monotonic() - began
                report(outcome, people=people, say=self.stdout.write)
                sign_in(people, say=self.stdout.write)
                if options["exit"]:
                    if outcome.failures:
                        raise CommandError(f"{len(outcome.failures)} jobs failed; see above.")
                    return
                self.stdout.write(f"\nTessera is at http://{HOST}:{port}  (Ctrl-C stops it)")
                code = tree.wait()
        except KeyboardInterrupt:
            self.stdout.write("\nStopped.")
            return
        raise CommandError(
            "A process of the portal cannot be kept running; see above.", returncode=code
        )

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # also where the output is a file

    def _run(self, people: Any) -> DemoResult:
        folder = settings.TESSERA_STORAGE.parent / "demo"
        self.stdout.write("Making the demo slides and video (only once)")
        material = [*sample_material(folder), *development_material(folder)]
        return demo_run(material, people=people, say=self.stdout.write)
