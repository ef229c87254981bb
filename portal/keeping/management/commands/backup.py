"""``manage.py backup DEST``: back up database and files of a running portal."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from portal.archive.storage import human_size
from portal.core.errors import PortalError
from portal.keeping import services
from portal.keeping.management.bar import bar
from portal.keeping.vault import Vault


class Command(BaseCommand):
    """Backs up database and files; what the destination holds already is not copied again."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to, how many to keep, or what to check."""
        parser.add_argument(
            "destination", type=Path, help="a folder, preferably on another machine"
        )
        parser.add_argument(
            "--keep", type=_count, help="generations to keep; older ones are removed"
        )
        parser.add_argument(
            "--forget-erased",
            action="store_true",
            help="remove older generations that hold what has been erased since",
        )
        parser.add_argument(
            "--verify",
            nargs="?",
            const="",
            metavar="GENERATION",
            help="make no backup; read every byte of the newest (or the named) one and compare",
        )
        parser.add_argument(
            "--list", action="store_true", help="make no backup; list what is there"
        )

    def handle(self, *args: Any, destination: Path, **options: Any) -> None:
        """Do it and say what came of it."""
        destination = destination.resolve()
        try:
            if options["list"]:
                self._list(Vault(destination))
            elif options["verify"] is not None:
                self._verify(destination, options["verify"] or None)
            else:
                self._take(destination, options["keep"], options["forget_erased"])
        except PortalError as error:
            raise CommandError(error.message) from error
        except (
            OSError,
            DatabaseError,
        ) as error:  # SQLite: the disk is full
            raise CommandError(f"The backup stopped: {error}") from error

    def _take(self, destination: Path, keep: int | None, forget: bool) -> None:
        with bar(self.stderr) as progress:
            report = services.backup_take(
                destination=destination, keep=keep, forget_erased=forget, progress=progress
            )
        manifest = report.manifest
        self.stdout.write(
            f"{manifest.name}: {manifest.files} files, {human_size(manifest.size_bytes)}; new:"
            f" {report.new_files} files, {human_size(report.new_bytes)}"
        )
        for name in report.pruned:
            self.stdout.write(f"removed {name}")
        if report.holding:
            self.stdout.write(
                f"still hold what has been erased since: {', '.join(report.holding)} "
                "(--forget-erased removes them)"
            )
        if manifest.missing:
            raise CommandError(
                f"The backup was made, but {len(manifest.missing)} files that the database names "
                f"are missing or damaged in the storage: {', '.join(manifest.missing[:10])}"
            )

    def _verify(self, destination: Path, name: str | None) -> None:
        with bar(self.stderr) as progress:
            manifest = services.backup_verify(destination=destination, name=name, progress=progress)
        size = human_size(manifest.size_bytes)
        self.stdout.write(f"{manifest.name}: {manifest.files} files, {size}: as written")

    def _list(self, vault: Vault) -> None:
        for name in vault.names():
            manifest = vault.manifest(name)
            size = human_size(manifest.size_bytes)
            self.stdout.write(f"{name}  {manifest.engine}  {manifest.files} files  {size}")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("a whole number of at least 1")
    return int(text)
