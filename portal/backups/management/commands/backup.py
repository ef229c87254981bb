"""``manage.py backup DEST``: back up database and files of a running portal."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from portal.archive.storage.files import human_size
from portal.backups.management.progress_bar import progress_bar
from portal.backups.repository import BackupRepository
from portal.backups.services.backup import backup_create, backup_verify
from portal.core.errors import PortalError


class Command(BaseCommand):
    """Back up database and files; contents that the destination has are not copied again."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
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
        """Back up, verify or list."""
        destination = destination.resolve()
        try:
            if options["list"]:
                self._list(BackupRepository(destination))
            elif options["verify"] is not None:
                self._verify(destination, options["verify"] or None)
            else:
                self._create(destination, options["keep"], options["forget_erased"])
        except PortalError as error:
            raise CommandError(error.message) from error
        except (
            OSError,
            DatabaseError,
        ) as error:  # SQLite: the disk is full
            raise CommandError(f"The backup stopped: {error}") from error

    def _create(self, destination: Path, keep: int | None, forget: bool) -> None:
        with progress_bar(self.stderr) as progress:
            report = backup_create(
                destination=destination, keep=keep, forget_erased=forget, progress=progress
            )
        manifest = report.manifest
        self.stdout.write(
            f"{manifest.name}: {manifest.files} files, {human_size(manifest.size_bytes)}; new:"
            f" {report.new_files} files, {human_size(report.new_bytes)}"
        )
        for name in report.removed:
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
        with progress_bar(self.stderr) as progress:
            manifest = backup_verify(destination=destination, name=name, progress=progress)
        size = human_size(manifest.size_bytes)
        self.stdout.write(f"{manifest.name}: {manifest.files} files, {size}: as written")

    def _list(self, repository: BackupRepository) -> None:
        for name in repository.names():
            manifest = repository.manifest(name)
            size = human_size(manifest.size_bytes)
            self.stdout.write(f"{name}  {manifest.engine}  {manifest.files} files  {size}")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("a whole number of at least 1")
    return int(text)
