"""``manage.py archive_sweep``: sweep the storage now, optionally with other limits."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.archive.rules import RETENTION
from portal.archive.services.identity import identity_adopt
from portal.archive.services.sweep import CACHE_BYTES, storage_sweep


class Command(BaseCommand):
    """Clear abandoned transfers, scratch and cache; set originals without a row aside."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Age and size limits, and what an administrator confirms."""
        parser.add_argument(
            "--older-than-hours", type=float, default=RETENTION.total_seconds() / 3600
        )
        parser.add_argument("--cache-gib", type=float, default=CACHE_BYTES / 2**30)
        parser.add_argument("--dry-run", action="store_true", help="count only, change nothing")
        parser.add_argument(
            "--many-orphans",
            action="store_true",
            help="move originals without a row to the orphan folder, however many there are",
        )
        parser.add_argument(
            "--adopt",
            action="store_true",
            help="first declare that the files in the storage belong to this database",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep and print the removed files; exit code 1 if a removal was refused."""
        if options["adopt"] and not options["dry_run"]:
            identity_adopt()
        swept = storage_sweep(
            older_than=timedelta(hours=options["older_than_hours"]),
            cache_bytes=int(options["cache_gib"] * 2**30),
            many_orphans=options["many_orphans"],
            dry_run=options["dry_run"],
        )
        self.stdout.write(
            f"{'would delete' if options['dry_run'] else 'deleted'}: {swept.transfers} transfers,"
            f" {swept.scratch} scratch folders, {swept.cached} cached tiles and frames,"
            f" {swept.expired} expired orphans; {swept.orphans} originals without a row set aside,"
            f" {swept.restored} put back; {swept.copies} copies of deleted originals"
        )
        if swept.refused:
            raise CommandError(swept.refused)
