"""``manage.py archive_sweep``: what the reaper does daily, now and with other limits."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from portal.archive.services import CACHE_BYTES, OLDER_THAN, storage_sweep


class Command(BaseCommand):
    """Deletes abandoned transfers, left-over scratch, assets without a row, and old cache."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Age and size limits."""
        parser.add_argument(
            "--older-than-hours", type=float, default=OLDER_THAN.total_seconds() / 3600
        )
        parser.add_argument("--cache-gib", type=float, default=CACHE_BYTES / 2**30)

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep and say what went."""
        swept = storage_sweep(
            older_than=timedelta(hours=options["older_than_hours"]),
            cache_bytes=int(options["cache_gib"] * 2**30),
        )
        self.stdout.write(
            f"deleted: {swept.transfers} transfers, {swept.scratch} scratch folders, "
            f"{swept.orphans} assets without a row, {swept.cached} cached tiles and frames"
        )
