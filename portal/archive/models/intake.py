"""A lab's rules for incoming files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from django.conf import settings
from django.db import models

from ml.types import JsonObject
from portal.archive.models.records import Upload
from portal.labs.models import LabOwned

BOX_FIELDS = ("x", "y", "width", "height")
MAX_IGNORED_WORDS = 200
MAX_IGNORED_WORD_LETTERS = 80


def boxes_as_objects(boxes: Iterable[Iterable[float]]) -> list[JsonObject]:
    """Boxes as objects with the names of ``BOX_FIELDS``."""
    return [dict(zip(BOX_FIELDS, box, strict=True)) for box in boxes]


class PixelRule(models.TextChoices):
    """Consequence of text or a face in a file's pixels."""

    HOLD = "hold", "Hold back for a manager"
    WARN = "warn", "Let through with a warning"
    OFF = "off", "Do not check"


def pixel_rule_default() -> str:
    """Rule for identifying text and faces, from the portal's settings."""
    return str(settings.TESSERA_PHI_IN_PIXELS)


def other_text_default() -> str:
    """A warning, unless the portal's settings switch the check off."""
    is_off = pixel_rule_default() == PixelRule.OFF
    return str(PixelRule.OFF if is_off else PixelRule.WARN)


class IntakeRules(LabOwned):
    """A lab's rules for incoming files; without a row the defaults apply."""

    edited = (
        "takes_names_out",
        "must_be_clean",
        "titles_from_files",
        "identifying_text",
        "other_text",
        "faces",
        "ignored_words",
        "keeps_originals",
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
    identifying_text = models.CharField(
        max_length=4,
        choices=PixelRule.choices,
        default=pixel_rule_default,
        help_text="Dates, numbers and names in the picture",
    )
    other_text = models.CharField(
        max_length=4,
        choices=PixelRule.choices,
        default=other_text_default,
        help_text="Text in the picture that identifies nobody",
    )
    faces = models.CharField(
        max_length=4,
        choices=PixelRule.choices,
        default=pixel_rule_default,
        help_text="Faces in the picture",
    )
    ignored_words = models.JSONField(
        default=list, blank=True, help_text="Words and phrases that are not reported"
    )

    keeps_originals = models.BooleanField(
        default=False, help_text="Keep the original of a redacted file, for managers only"
    )

    class Meta:
        verbose_name_plural = "intake rules"
        constraints = (models.UniqueConstraint(fields=["lab"], name="intake_rules_of_lab"),)


@dataclass(frozen=True, slots=True)
class FileScope:
    """Files whose pictures have the same layout: one kind, device and size.

    Attributes:
        kind: "slide", "still" or "video"; "" if the scope is not known.
        device: Maker, model and software as the file names them; "" if it names none.
    """

    kind: str = ""
    device: str = ""
    width_px: int = 0
    height_px: int = 0


DEVICE_WORDS = {"slide": "scanner", "video": "scope"}
"""Device that makes files of a kind, in words; "device" for others."""
SCOPE_FIELDS = tuple(field.name for field in fields(FileScope))


class Scoped(models.Model):
    """Columns of a ``FileScope``."""

    kind = models.CharField(max_length=10, blank=True)
    device = models.CharField(max_length=120, blank=True)
    width_px = models.PositiveIntegerField(default=0)
    height_px = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True

    @property
    def scope(self) -> FileScope | None:
        """Scope of the row; None if it is not known."""
        scope = FileScope(*(getattr(self, name) for name in SCOPE_FIELDS))
        return scope if scope.kind else None

    @property
    def scope_name(self) -> str:
        """The scope in words: device, kind and size."""
        files = f"{self.kind}s of {self.width_px:,} × {self.height_px:,} px"
        if self.device:
            return f"{self.device}, {files}"
        return f"{files} of an unknown {DEVICE_WORDS.get(self.kind, 'device')}"


class RedactionTemplate(Scoped, LabOwned):
    """Boxes that a manager wants black in all files of a scope; applied to files in quarantine."""

    boxes = models.JSONField(help_text="x, y, width, height of each, as shares of the picture")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("device", "kind", "width_px", "height_px", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["lab", "kind", "device", "width_px", "height_px"],
                name="redaction_template_unique",
            ),
        )

    @property
    def boxes_named(self) -> list[JsonObject]:
        """The boxes as objects: x, y, width, height."""
        return boxes_as_objects(self.boxes)


class Redaction(LabOwned):
    """Boxes to blacken in a file before it is ingested, and its original if that is kept."""

    upload = models.OneToOneField(Upload, on_delete=models.CASCADE, related_name="redaction")
    boxes = models.JSONField(help_text="x, y, width, height of each, as shares of the picture")
    applied_at = models.DateTimeField(null=True, help_text="Empty: not yet in the file")
    original = models.OneToOneField(
        Upload, null=True, on_delete=models.SET_NULL, related_name="redacted"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    @property
    def boxes_named(self) -> list[JsonObject]:
        """The boxes as objects: x, y, width, height."""
        return boxes_as_objects(self.boxes)


class Evidence(Scoped, LabOwned):
    """Findings in the pixels of a file in quarantine; deleted once a manager has decided."""

    upload = models.OneToOneField(Upload, on_delete=models.CASCADE, related_name="evidence")
    findings = models.JSONField(help_text="Places: kind; text; x, y, width, height as shares; at_s")
    picture = models.BinaryField(help_text="JPEG")

    class Meta:
        verbose_name_plural = "evidence"
