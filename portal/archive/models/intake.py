"""How a lab takes files in."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.archive.models.records import Upload
from portal.labs.models import LabOwned


class Seen(models.TextChoices):
    """What becomes of a file whose pixels may reveal somebody."""

    HOLD = "hold", "Hold back for a manager"
    TELL = "tell", "Let through with a warning"
    OFF = "off", "Do not check"


def seen_default() -> str:
    """As the portal's settings say."""
    return str(settings.TESSERA_SEEN_IN_PIXELS)


class IntakeRules(LabOwned):
    """How a lab takes files in; without a row: as the defaults say."""

    edited = (
        "takes_names_out",
        "must_be_clean",
        "titles_from_files",
        "text_in_pixels",
        "faces_in_pixels",
    )

    takes_names_out = models.BooleanField(
        default=True, help_text="Remove labels, macro images and fields that may name somebody"
    )
    must_be_clean = models.BooleanField(
        default=False, help_text="Put a file into quarantine if something cannot be removed from it"
    )
    titles_from_files = models.BooleanField(
        default=True, help_text="Name an item without a title after its file"
    )
    text_in_pixels = models.CharField(
        max_length=4, choices=Seen.choices, default=seen_default, help_text="Text in the picture"
    )
    faces_in_pixels = models.CharField(
        max_length=4, choices=Seen.choices, default=seen_default, help_text="Faces in the picture"
    )

    class Meta:
        verbose_name_plural = "intake rules"
        constraints = (models.UniqueConstraint(fields=["lab"], name="intake_rules_of_lab"),)


class Evidence(LabOwned):
    """What pixels of a file in quarantine reveal, with a picture; deleted once that is decided."""

    upload = models.OneToOneField(Upload, on_delete=models.CASCADE, related_name="evidence")
    found = models.JSONField(help_text="Places: kind; x, y, width, height as shares; at_s")
    picture = models.BinaryField(help_text="JPEG")

    class Meta:
        verbose_name_plural = "evidence"
