"""``manage.py restore SRC``: restore a backup into an empty installation."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from portal.backups.management.progress_bar import progress_bar
from portal.backups.services.restore import restore
from portal.core.errors import PortalError


class Command(BaseCommand):
    """Restore rows and files; a worker builds the search indexes afterwards."""

    help = __doc__
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("source", type=Path, help="the destination of backups")
        parser.add_argument("--generation", help="its name; the newest if none is named")
        parser.add_argument(
            "--overwrite", action="store_true", help="replace the database of this installation"
        )

    def handle(self, *args: Any, source: Path, **options: Any) -> None:
        """Restore and report the counts."""
        try:
            with progress_bar(self.stderr) as progress:
                report = restore(
                    source=source.resolve(),
                    name=options["generation"],
                    overwrite=options["overwrite"],
                    progress=progress,
                )
        except PortalError as error:
            raise CommandError(error.message) from error
        except (
            OSError,
            DatabaseError,
        ) as error:  # SQLite: the disk is full
            raise CommandError(f"The restore stopped: {error}") from error
        manifest = report.manifest
        self.stdout.write(
            f"{manifest.name} of {manifest.taken_at}: {report.labs} labs, {report.people} people,"
            f" {manifest.files} files; {report.indexes} search indexes will be built"
        )
        if manifest.missing:
            self.stdout.write(f"not in the backup: {', '.join(manifest.missing)}")
