"""``manage.py training_set LAB OUT --by MANAGER``: write the regions of a lab for training."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.archive.models import CanvasKind
from portal.core.errors import PortalError
from portal.labs.models import Lab, User
from portal.model_training.services.training_sets import HELD_OUT, training_set_write


class Command(BaseCommand):
    """Write regions without names, and record the person in the lab's audit log."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("lab", help="the short name of the lab")
        parser.add_argument("out", type=Path, help="an empty or a new folder")
        parser.add_argument("--by", required=True, help="e-mail of the manager who permits it")
        parser.add_argument("--mpp", type=float, default=0.5, help="microns per pixel (0.5)")
        parser.add_argument("--kind", nargs="*", choices=CanvasKind.values, default=[])
        parser.add_argument(
            "--accepted", action="store_true", help="only regions that were accepted in review"
        )
        parser.add_argument(
            "--held-out", type=float, default=HELD_OUT, help="share of patients kept back (0.2)"
        )

    def handle(self, *args: Any, lab: str, out: Path, by: str, **options: Any) -> None:
        """Write the training set and print its summary."""
        try:
            found_lab = Lab.objects.get(slug=lab)
            user = User.objects.get(email=by.strip().lower())
        except (Lab.DoesNotExist, User.DoesNotExist) as error:
            raise CommandError(f"There is no lab {lab}, or no person {by}.") from error
        if not options["mpp"] > 0:
            raise CommandError(f"--mpp: expected a number above 0, got {options['mpp']}.")
        try:
            result = training_set_write(
                lab=found_lab,
                user=user,
                out=out,
                mpp=options["mpp"],
                kinds=options["kind"],
                accepted=options["accepted"],
                held_out=options["held_out"],
            )
        except PortalError as error:
            raise CommandError(error.message) from error
        self.stdout.write(
            f"{result.regions} regions of {result.patients} patients, {result.held_out} of them "
            f"held out; {result.labels} labels; {result.unreadable} regions cannot be read."
        )
        for config in sorted(out.glob("*.json")):
            self.stdout.write(
                f"python -m ml train {config.stem} --from WEIGHTS --data {out} --config {config}"
                " --out FOLDER"
            )
