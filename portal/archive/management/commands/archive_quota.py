"""``manage.py archive_quota``: show or set how much space the originals of each lab may take."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.archive.services.quotas import quota_limit_bytes, quota_set, quota_used_bytes
from portal.archive.storage.files import human_size
from portal.labs.models import Lab


class Command(BaseCommand):
    """Lists the labs; with a lab and a number, sets its limit."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The lab, and its limit."""
        parser.add_argument("lab", nargs="?", help="slug of a lab")
        parser.add_argument("--gib", type=float, help="its limit; 0 means none")
        parser.add_argument(
            "--default", action="store_true", help="use the limit of the settings again"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Set the quota if requested, then list quotas."""
        labs = Lab.objects.order_by("name")
        if options["lab"]:
            labs = labs.filter(slug=options["lab"])
            if not labs:
                raise CommandError(f"There is no lab {options['lab']!r}.")
            if options["default"] or options["gib"] is not None:
                limit = None if options["default"] else int(options["gib"] * 2**30)
                quota_set(lab=labs[0], limit_bytes=limit)
        for lab in labs:
            limit = quota_limit_bytes(lab.pk)
            may = human_size(limit) if limit else "any amount"
            self.stdout.write(f"{lab.slug}: {human_size(quota_used_bytes(lab.pk))} of {may}")
