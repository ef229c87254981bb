"""``manage.py case_import CRATE``: import a whole case, once exported, into a lab."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ml.types import Progress
from portal.archive.storage.files import human_size
from portal.core.errors import PortalError
from portal.interop.rocrate.services.imports.cases import case_import
from portal.labs.models import Lab, User

PRINTED_EVERY_BYTES = 2**30  # some seconds of reading


class Command(BaseCommand):
    """A crate as a zip or a folder; if killed, the same command resumes."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments of the command."""
        parser.add_argument("crate", type=Path, help="an exported zip, or the folder of its files")
        parser.add_argument("--lab", required=True, help="its short name")
        parser.add_argument("--user", required=True, help="e-mail address of a manager of the lab")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import a case; print the progress every GiB, and the result."""
        lab = Lab.objects.filter(slug=options["lab"]).first()
        user = User.objects.filter(email__iexact=options["user"], is_active=True).first()
        if lab is None or user is None:
            raise CommandError(f"There is no {'account' if lab else 'lab'} with that name.")
        try:
            result = case_import(
                source=options["crate"], lab=lab, user=user, progress=self._progress()
            )
        except PortalError as error:
            raise CommandError(error.message) from error
        except OSError as error:
            raise CommandError(f"{options['crate']}: {error}") from error
        if not result.is_new:
            self.stdout.write(f"{result.case.accession}: everything is already here.")
            return
        self.stdout.write(
            f"{result.case.accession}: {result.rows} records, {result.originals} new originals; "
            "its images are now being prepared."
        )
        if result.left_out:
            self.stdout.write(
                f"{result.left_out} embeddings were left out: this portal does not have their "
                "encoders."
            )

    def _progress(self) -> Progress:
        printed = ("", 0)

        def progress(done: int, total: int, phase: str) -> None:
            nonlocal printed
            now = (phase, done // PRINTED_EVERY_BYTES)
            if now != printed:
                printed = now
                self.stdout.write(f"{phase}: {human_size(done)} of {human_size(total)}")

        return progress
