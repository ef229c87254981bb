"""``manage.py archive_watch FOLDER``: receive what scanners write to a folder."""

from __future__ import annotations

import signal
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections

from portal.archive.services.watching import FolderWatch, WatchOutcome
from portal.core.errors import PortalError
from portal.labs.models import Lab, User


class Command(BaseCommand):
    """Files in ``FOLDER/<accession>/`` become slides and videos of the case of that number."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("folder", type=Path)
        parser.add_argument("--lab", required=True, help="its short name")
        parser.add_argument(
            "--person",
            required=True,
            help="e-mail address, or the name of a service account of the lab",
        )
        parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks")
        parser.add_argument(
            "--settle",
            type=float,
            default=10.0,
            help="seconds that a file must stay unchanged to count as complete",
        )
        parser.add_argument("--once", action="store_true", help="take what is there, and exit")

    def handle(self, *args: Any, **options: Any) -> None:
        """Watch until SIGTERM or Ctrl+C; a file being received is finished first."""
        folder: Path = options["folder"]
        if not folder.is_dir():
            raise CommandError(f"{folder}: no such folder.")
        lab = _lab(options["lab"])
        watch = FolderWatch(
            folder,
            lab=lab,
            user=_person(lab, options["person"]),
            settle_s=0.0 if options["once"] else options["settle"],
        )
        for name in watch.stray():
            self.stderr.write(f"{name} is not in the folder of a case and is left where it is.")
        with _stop_signals() as ended:
            logged_reasons: dict[Path, str] = {}
            while not ended.is_set():
                self._look(watch, logged_reasons, ended)
                if options["once"]:
                    return
                ended.wait(options["every"])
                close_old_connections()  # reconnect if the database was unreachable

    def _look(
        self, watch: FolderWatch, logged_reasons: dict[Path, str], ended: threading.Event
    ) -> None:
        try:
            for result in watch.look(time.monotonic()):
                line = f"{result.path}: {result.outcome.value}"
                if result.outcome is not WatchOutcome.LATER:
                    logged_reasons.pop(result.path, None)
                    out = self.stderr if result.outcome is WatchOutcome.REFUSED else self.stdout
                    out.write(f"{line}: {result.reason}" if result.reason else line)
                elif logged_reasons.get(result.path) != result.reason:  # log only the first time
                    logged_reasons[result.path] = result.reason
                    self.stderr.write(f"{line}: {result.reason}")
                if ended.is_set():
                    return
        except PortalError as error:
            raise CommandError(error.message) from error
        except OSError as error:
            raise CommandError(f"{watch.folder}: {error}") from error


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    ended = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: ended.set()) for number in numbers]
    try:
        yield ended
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _lab(slug: str) -> Lab:
    lab = Lab.objects.filter(slug=slug).first()
    if lab is None:
        names = ", ".join(Lab.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise CommandError(f"No lab is called {slug}. Labs: {names or 'none'}.")
    return lab


def _person(lab: Lab, name: str) -> User:
    members = User.objects.filter(memberships__in=lab.memberships.all(), is_active=True)
    matches = members.filter(email__iexact=name) | members.filter(is_service=True, full_name=name)
    people = list(matches.distinct()[:2])
    if len(people) != 1:
        problem = "More than one service account" if people else "No member or service account"
        raise CommandError(f"{problem} of {lab.slug} is called {name}.")
    return people[0]
