"""``manage.py case_export CASE``: export a whole case as a zip or a folder."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.archive.models import Case
from portal.archive.storage.files import human_size
from portal.core.errors import PortalError
from portal.interop.rocrate.services.exports import case_export_to
from portal.labs.models import User


class Command(BaseCommand):
    """Write a case as a manager sees it, with the ids it has here."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments of the command."""
        parser.add_argument("case", help="its accession number")
        parser.add_argument("--lab", required=True, help="its short name")
        parser.add_argument("--user", required=True, help="e-mail address of a manager of the lab")
        parser.add_argument(
            "--out", required=True, type=Path, help="a new file NAME.zip, or a new folder"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write it whole or not at all."""
        user = User.objects.filter(email__iexact=options["user"], is_active=True).first()
        case = Case.objects.filter(lab__slug=options["lab"], accession=options["case"]).first()
        if case is None or user is None:
            raise CommandError(f"There is no {'account' if case else 'case'} with that name.")
        out: Path = options["out"]
        try:
            result = case_export_to(
                user=user, case=case, out=out, as_folder=out.suffix.lower() != ".zip"
            )
        except PortalError as error:
            raise CommandError(error.message) from error
        except OSError as error:
            raise CommandError(f"{out}: {error}") from error
        size = human_size(int(str(result["size_bytes"])))
        self.stdout.write(
            f"{out}: {result['rows']} records, {result['originals']} originals, {size} in all"
        )
