"""How a lab takes files in."""

from __future__ import annotations

from django.db import models

from portal.labs.models import LabOwned


class IntakeRules(LabOwned):
    """How a lab takes files in; without a row: as the defaults say."""

    takes_names_out = models.BooleanField(
        default=True, help_text="Labels, macro images and fields that may name somebody go"
    )
    must_be_clean = models.BooleanField(
        default=False, help_text="What cannot be taken out of a file puts it into quarantine"
    )
    titles_from_files = models.BooleanField(
        default=True, help_text="A file without a title gets its file's name as one"
    )

    class Meta:
        verbose_name_plural = "intake rules"
        constraints = (models.UniqueConstraint(fields=["lab"], name="intake_rules_of_lab"),)
