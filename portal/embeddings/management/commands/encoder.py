"""``manage.py encoder``: compare the waiting encoder with the default; approve or reject it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.archive.models import Modality
from portal.core.errors import ConflictError
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.encoder_comparison import encoder_compare
from portal.embeddings.selectors.encoders import backfill_jobs_open, encoder_default, encoder_next
from portal.embeddings.services.encoders import encoder_approve, encoder_reject
from portal.labs.models import Lab


class Command(BaseCommand):
    """Compare the next encoder on the labs' own labels; approve or reject it."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's arguments."""
        parser.add_argument("action", choices=("compare", "approve", "reject"))
        parser.add_argument("--kind", choices=Modality.values, default=Modality.HISTOLOGY)

    def handle(self, *args: Any, action: str, kind: str, **options: Any) -> None:
        """Run the action and print its result."""
        try:
            if action == "compare":
                self._compare(kind)
            elif action == "approve":
                self.stdout.write(f"{encoder_approve(kind)} is the default of {kind}")
            else:
                self.stdout.write(f"{encoder_reject(kind)} is no longer waiting")
        except ConflictError as error:
            raise CommandError(str(error)) from error

    def _compare(self, kind: str) -> None:
        current, following = encoder_default(kind), encoder_next(kind)
        if current is None or following is None:
            raise ConflictError(f"No {kind} encoder is waiting to become the default.")
        job_count = backfill_jobs_open(following).count()
        self.stdout.write(f"{current} (default) and {following} (next; {job_count} jobs are left)")
        for lab in Lab.objects.order_by("name"):
            self.stdout.write(f"{lab.name}: {self._line(lab, current, following)}")

    def _line(self, lab: Lab, current: Encoder, following: Encoder) -> str:
        result = encoder_compare(current=current, following=following, lab_id=lab.pk)
        if result is None:
            return "no label is shared by two patients, so there is nothing to compare by"
        return (
            f"{result.rois} labelled ROIs of {result.patients} patients; same label among the"
            f" ten nearest of other patients: {result.current:.3f} and {result.following:.3f}"
            f" (chance {result.chance:.3f}), gain {result.gain:+.3f}"
            f" [{result.gain_low:+.3f}, {result.gain_high:+.3f}];"
            f" {result.in_common:.0%} of the nearest are the same"
        )
