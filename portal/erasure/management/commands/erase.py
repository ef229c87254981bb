"""``manage.py erase LAB --case ACCESSION | --patient KEY --by MANAGER``: erase for good.

Without ``--now`` the cases go into the trash, from which they can still be restored.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.archive.models import Case
from portal.archive.services.cases import case_delete
from portal.core.errors import PortalError
from portal.erasure.services.erasures import cases_of, erasure_begin, erasure_run
from portal.labs.models import Lab, User


class Command(BaseCommand):
    """Erase cases with all of their data, and print the certificate."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("lab", help="the short name of the lab")
        subject = parser.add_mutually_exclusive_group(required=True)
        subject.add_argument("--case", default="", metavar="ACCESSION")
        subject.add_argument("--patient", default="", metavar="KEY")
        parser.add_argument("--by", required=True, help="e-mail of the manager who requests it")
        parser.add_argument(
            "--reason", default="", help="kept in the certificate; it must not name the patient"
        )
        parser.add_argument("--now", action="store_true", help="erase; this cannot be undone")

    def handle(self, *args: Any, lab: str, by: str, **options: Any) -> None:
        """Erase, or move into the trash without ``--now``."""
        try:
            found_lab = Lab.objects.get(slug=lab)
            user = User.objects.get(email=by.strip().lower())
        except (Lab.DoesNotExist, User.DoesNotExist) as error:
            raise CommandError(f"There is no lab {lab}, or no person {by}.") from error
        try:
            cases = cases_of(
                lab=found_lab, accession=options["case"], patient_key=options["patient"]
            )
            if not options["now"]:
                self._into_trash(cases, user)
                return
            erasure = erasure_run(
                erasure_begin(lab=found_lab, cases=cases, user=user, reason=options["reason"])
            )
        except PortalError as error:
            raise CommandError(error.message) from error
        self.stdout.write(json.dumps(erasure.certificate, indent=1))
        if erasure.state != "done":
            raise CommandError(erasure.error_message)

    def _into_trash(self, cases: list[Case], user: User) -> None:
        for case in cases:
            if case.trash_entry_id is None:
                case_delete(case=case, user=user)
        self.stdout.write(f"{len(cases)} cases are in the trash; --now erases them for good.")
