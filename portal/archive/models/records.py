"""Cases and what they hold. A slide, a video or a mosaic shows on a canvas."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

from django.conf import settings
from django.core.validators import MaxLengthValidator
from django.db import models

from ml.types import DisplayGeometry, DisplayRange
from portal.archive.models.shares import cases_shared_with
from portal.archive.models.trash import PRESENT, Trashable
from portal.core.database.names import NameField
from portal.core.models import BaseModel
from portal.labs.models import LabOwned, User


class Sex(models.TextChoices):
    """Sex as sent by the hospital system; unknown is common after de-identification."""

    FEMALE = "female", "Female"
    MALE = "male", "Male"
    OTHER = "other", "Other"
    UNKNOWN = "unknown", "Unknown"


class AgeBand(models.TextChoices):
    """Ten-year bands: an exact age could help to name a patient."""

    UNKNOWN = "unknown", "Unknown"
    A0 = "0-9", "0-9"
    A10 = "10-19", "10-19"
    A20 = "20-29", "20-29"
    A30 = "30-39", "30-39"
    A40 = "40-49", "40-49"
    A50 = "50-59", "50-59"
    A60 = "60-69", "60-69"
    A70 = "70-79", "70-79"
    A80 = "80-89", "80-89"
    A90 = "90+", "90+"


class Modality(models.TextChoices):
    """Kind of examination: decides which encoder embeds an image's regions, and what it offers."""

    HISTOLOGY = "histology", "Histology"
    ENDOSCOPY = "endoscopy", "Endoscopy"


MAX_NOTES = 10_000  # characters: a long consultation letter


class Case(Trashable):
    """A patient examination.

    ``search_text`` is what the list searches, one value a line, lower case, tags after a ``#``:
    JSON cannot be searched alike on SQLite and PostgreSQL. ``case_create`` and ``case_update`` keep
    it.
    """

    edited = (
        *("accession", "patient_key", "age_band", "sex"),
        *("organ", "procedure", "diagnosis", "tags", "modality"),
        *("clinical_question", "notes"),
    )
    accession = NameField(max_length=64)
    patient_key = NameField(max_length=64, blank=True, help_text="Pseudonym, never a name")
    age_band = models.CharField(max_length=8, choices=AgeBand.choices, default=AgeBand.UNKNOWN)
    sex = models.CharField(max_length=8, choices=Sex.choices, default=Sex.UNKNOWN)
    organ = NameField(max_length=80, blank=True)
    procedure = NameField(max_length=120, blank=True)
    diagnosis = NameField(max_length=200, blank=True)
    clinical_question = NameField(
        max_length=500, blank=True, help_text="Question of the referring clinician"
    )
    notes = models.TextField(
        max_length=MAX_NOTES,
        validators=[MaxLengthValidator(MAX_NOTES)],
        blank=True,
        help_text="Plain text for the lab, not shown to other labs",
    )
    tags = models.JSONField(default=list, blank=True)
    modality = models.CharField(
        max_length=20,
        choices=Modality.choices,
        blank=True,
        help_text="Modality of its first image; empty before there is one",
    )
    is_modality_by_hand = models.BooleanField(
        default=False, help_text="Somebody in the lab set it, for all its images"
    )
    search_text = models.TextField(blank=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["lab", "accession"], condition=PRESENT, name="case_accession_unique"
            ),
        )
        indexes = (
            models.Index(fields=["lab", "patient_key"], name="case_lab_patient"),
            models.Index(fields=["lab", "modality"], name="case_lab_modality"),
        )

    def __str__(self) -> str:
        return self.accession

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """Rows that another lab shares."""
        return models.Q(pk__in=cases_shared_with(user))


class Asset(LabOwned):
    """A stored file, identified by its content. Its path follows from lab and hash."""

    sha256 = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    media_type = models.CharField(max_length=80)
    removed = models.JSONField(
        null=True, help_text="Names of fields removed from the file; null if it was not checked"
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=["lab", "sha256"], name="asset_unique"),)


class StorageIdentity(BaseModel):
    """Identity of this database, the id in ``identity.json`` of the storage. A single row."""

    is_singleton = models.BooleanField(default=True, unique=True, editable=False)

    class Meta:
        verbose_name_plural = "storage identities"


class LabQuota(LabOwned):
    """Limit on the size of one lab's originals, if it differs from the setting."""

    limit_bytes = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["lab"], name="lab_quota_unique"),)


class UploadState(models.TextChoices):
    RECEIVING = "receiving", "Receiving"
    CHECKING = "checking", "Checking"
    STORED = "stored", "Stored"
    REFUSED = "refused", "Refused"
    QUARANTINED = "quarantined", "In quarantine"
    WITHHELD = "withheld", "Original of a redacted file"


class Upload(LabOwned):
    """A transfer of one file into a case, at once or in pieces; once stored, it has an asset.

    It may arrive in several parts at once: rows of their own, joined to make ``joined_upload``.
    A crate brings a whole case: it has no case before it is imported, and never an asset.
    """

    case = models.ForeignKey(
        Case,
        null=True,
        on_delete=models.CASCADE,
        related_name="uploads",
        help_text="Empty for a crate that was not imported",
    )
    filename = NameField(max_length=255)
    name = NameField(max_length=200, blank=True, help_text="The title that it will have")
    size_bytes = models.BigIntegerField(default=0)
    received_bytes = models.BigIntegerField(default=0, help_text="Bytes that certainly arrived")
    sha256 = models.CharField(
        max_length=64, blank=True, help_text="As announced; later as measured"
    )
    state = models.CharField(
        max_length=11, choices=UploadState.choices, default=UploadState.RECEIVING
    )
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)
    is_part = models.BooleanField(default=False)
    joined_upload = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="parts"
    )
    part_number = models.PositiveIntegerField(default=0)
    asset = models.ForeignKey(Asset, null=True, on_delete=models.PROTECT, related_name="uploads")
    release_reason = models.CharField(
        max_length=300, blank=True, help_text="Why a manager let it pass"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        indexes = (models.Index(fields=["lab", "sha256"], name="upload_lab_sha256"),)


class CanvasKind(models.TextChoices):
    """Kind of object that a canvas shows."""

    SLIDE = "slide", "Slide"
    STILL = "still", "Still"
    VIDEO = "video", "Video"
    MOSAIC = "mosaic", "Mosaic"


class Canvas(Trashable):
    """A pixel plane with width, height, microns per pixel and, for video, time.

    ``pixels_path`` is relative to the storage root: the file tiles are served from (for a video,
    the file frames are read from). ``content_hash`` names its bytes for ETags.
    """

    edited = (
        "mpp_x",
        "mpp_y",
        "display_range",
        "modality",
    )

    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="canvases")
    kind = models.CharField(max_length=8, choices=CanvasKind.choices)
    modality = models.CharField(max_length=20, choices=Modality.choices, default=Modality.HISTOLOGY)
    is_modality_by_hand = models.BooleanField(default=False, help_text="Somebody in the lab set it")
    name = NameField(max_length=200)
    width_px = models.PositiveIntegerField()
    height_px = models.PositiveIntegerField()
    mpp_x = models.FloatField(null=True, blank=True)
    mpp_y = models.FloatField(null=True, blank=True)
    is_scaled_by_hand = models.BooleanField(
        default=False, help_text="The pixel size is not in the file; somebody in the lab set it"
    )
    has_icc_profile = models.BooleanField(
        default=False, help_text="Tiles carry the scanner's colour profile"
    )
    display_range = models.JSONField(
        null=True, help_text="Values shown as black and white; see ml.types.DisplayRange"
    )
    file_display_range = models.JSONField(
        null=True, help_text="The same as found in the file; null for pixels of 8 bits"
    )
    levels = models.JSONField(default=list, help_text="Tile grid, finest first; see ml.types.Level")
    pixels_path = models.CharField(max_length=255)
    thumbnail_path = models.CharField(max_length=255, blank=True)
    content_hash = models.CharField(max_length=64)

    class Meta:
        ordering = ("created_at", "id")
        verbose_name_plural = "canvases"
        indexes = (models.Index(fields=["lab", "modality"], name="canvas_lab_modality"),)

    def __str__(self) -> str:
        return self.name

    @property
    def mpp(self) -> float | None:
        """Microns per pixel; the geometric mean if pixels are not square; None if unknown."""
        if self.mpp_x is None or self.mpp_y is None:
            return None
        return float((self.mpp_x * self.mpp_y) ** 0.5)

    @property
    def shown_range(self) -> DisplayRange | None:
        """The display range; None for pixels of 8 bits."""
        return DisplayRange(**self.display_range) if self.display_range else None

    @property
    def picture_tag(self) -> str:
        """Names the picture that is shown: the bytes of the file, and the display range."""
        tag = self.content_hash[:24]
        if self.display_range is None:
            return tag
        values = f"{self.display_range['low']!r} {self.display_range['high']!r}"
        return f"{tag}-{hashlib.sha256(values.encode()).hexdigest()[:8]}"


class ItemState(models.TextChoices):
    """State of a slide, video or mosaic."""

    PREPARING = "preparing", "Preparing"
    READY = "ready", "Ready"
    FAILED = "failed", "Failed"


class CaseItem(Trashable):
    """Object of a case, made by a job and shown on a canvas once ready."""

    edited: ClassVar[tuple[str, ...]] = ("name",)
    name = NameField(max_length=200)
    state = models.CharField(
        max_length=10, choices=ItemState.choices, default=ItemState.PREPARING, db_index=True
    )
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)
    warnings = models.JSONField(default=list)
    canvas = models.OneToOneField(
        Canvas, null=True, blank=True, on_delete=models.SET_NULL, related_name="%(class)s"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        abstract = True


class Slide(CaseItem):
    """A whole-slide image or a still. ``stain`` is as its file or a person says it."""

    edited = ("name", "stain")
    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="slides")
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="slides")
    vendor = models.CharField(max_length=60, blank=True)
    objective_power = models.FloatField(null=True, blank=True)
    stain = NameField(max_length=80, blank=True)
    is_stain_by_hand = models.BooleanField(
        default=False, help_text="Set by a person, also as unknown; not read from the file"
    )
    properties = models.JSONField(default=dict, help_text="Allow-listed vendor metadata only")

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["case", "asset"], condition=PRESENT, name="slide_case_asset_unique"
            ),
        )


class Video(CaseItem):
    """An endoscopic video. Frames are identified by presentation time and index together."""

    case = models.ForeignKey(Case, on_delete=models.CASCADE, related_name="videos")
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="videos")
    codec = models.CharField(max_length=40, blank=True)
    container = models.CharField(max_length=80, blank=True)
    duration_s = models.FloatField(default=0)
    fps = models.FloatField(default=0)
    geometry = models.JSONField(
        null=True, help_text="Stored size, pixel shape, orientation; see ml.types.DisplayGeometry"
    )
    frame_count = models.PositiveIntegerField(default=0)
    time_base_s = models.FloatField(default=0)
    frames_path = models.CharField(
        max_length=255, blank=True, help_text="frames.npz, the frame table"
    )
    media_path = models.CharField(max_length=255, blank=True, help_text="What the browser plays")
    media_offset_s = models.FloatField(default=0, help_text="Media time is frame time minus this")

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["case", "asset"], condition=PRESENT, name="video_case_asset_unique"
            ),
        )

    @property
    def display_geometry(self) -> DisplayGeometry | None:
        """Display geometry of the frames; None until the video is ready."""
        return DisplayGeometry(**self.geometry) if self.geometry else None


def canvases_in_trash() -> models.QuerySet[Canvas, Any]:
    """Ids of canvases in the trash, as a subquery."""
    return Canvas.all_objects.exclude(trash_entry=None).order_by().values("pk")
