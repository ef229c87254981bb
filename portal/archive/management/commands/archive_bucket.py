"""``manage.py archive_bucket``: create the bucket of originals if it is missing, and test it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.archive.storage.files import s3_settings, the_store
from portal.archive.storage.s3_store import bucket_make


class Command(BaseCommand):
    """For ``TESSERA_STORE=s3``; safe to run at any time."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it, then write, read and delete."""
        bucket = s3_settings()
        if bucket is None:
            raise CommandError("Originals are stored in a folder here; set TESSERA_STORE=s3.")
        try:
            is_new = bucket_make(bucket)
            the_store().check()
        except OSError as error:
            raise CommandError(f"{bucket.bucket}: {error.__cause__ or error}") from None
        self.stdout.write(f"{bucket.bucket}: {'created' if is_new else 'exists'}; it can be used")
