"""``manage.py encoder``: compare the waiting encoder with the default; approve or reject it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.core.errors import ConflictError
from portal.labs.models import Lab
from portal.retrieval import selectors, services
from portal.retrieval.models import Encoder, EncoderKind


class Command(BaseCommand):
    """Says how the next encoder does on the labs' own labels; approves or rejects it."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to do, and for which kind of image."""
        parser.add_argument("action", choices=("compare", "approve", "reject"))
        parser.add_argument("--kind", choices=EncoderKind.values, default=EncoderKind.HISTOLOGY)

    def handle(self, *args: Any, action: str, kind: str, **options: Any) -> None:
        """Do it and say what came of it."""
        try:
            if action == "compare":
                self._compare(kind)
            elif action == "approve":
                self.stdout.write(f"{services.encoder_approve(kind)} is the default of {kind}")
            else:
                self.stdout.write(f"{services.encoder_reject(kind)} is no longer waiting")
        except ConflictError as error:
            raise CommandError(str(error)) from error

    def _compare(self, kind: str) -> None:
        current, following = selectors.encoder_default(kind), selectors.encoder_next(kind)
        if current is None or following is None:
            raise ConflictError(f"No {kind} encoder is waiting to become the default.")
        left = selectors.backfill_jobs_open(following).count()
        self.stdout.write(f"{current} (default) and {following} (next; {left} jobs are left)")
        for lab in Lab.objects.order_by("name"):
            self.stdout.write(f"{lab.name}: {self._line(lab, current, following)}")

    def _line(self, lab: Lab, current: Encoder, following: Encoder) -> str:
        found = selectors.encoder_compare(current=current, following=following, lab_id=lab.pk)
        if found is None:
            return "no label is shared by two patients, so there is nothing to compare by"
        return (
            f"{found.rois} labelled ROIs of {found.patients} patients; same label among the ten"
            f" nearest of other patients: {found.current:.3f} and {found.following:.3f}"
            f" (chance {found.chance:.3f}), gain {found.gain:+.3f}"
            f" [{found.gain_low:+.3f}, {found.gain_high:+.3f}];"
            f" {found.in_common:.0%} of the nearest are the same"
        )
