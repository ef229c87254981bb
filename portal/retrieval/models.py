"""Encoders, embeddings and the index files derived from them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.annotations.models import Roi
from portal.archive.models import Canvas, CanvasKind, canvases_in_bin
from portal.core.models import BaseModel
from portal.labs.models import Lab, LabOwned, LabOwnedManager, LabOwnedQuerySet

CURRENT = models.Q(superseded_at__isnull=True)
"""Embeddings that searches may find."""


class EncoderKind(models.TextChoices):
    """What an encoder was trained for; each kind has a default of its own."""

    HISTOLOGY = "histology", "Histology"
    ENDOSCOPY = "endoscopy", "Endoscopy"


CANVASES_OF = {
    EncoderKind.HISTOLOGY: (CanvasKind.SLIDE, CanvasKind.STILL),
    EncoderKind.ENDOSCOPY: (CanvasKind.VIDEO, CanvasKind.MOSAIC),
}
"""The canvases whose ROIs an encoder of a kind embeds."""


class Encoder(BaseModel):
    """What turns an ROI into a vector: name + version + hash of its configuration."""

    name = models.CharField(max_length=80)
    version = models.CharField(max_length=40)
    config_hash = models.CharField(max_length=64)
    dim = models.PositiveIntegerField()
    kind = models.CharField(
        max_length=20, choices=EncoderKind.choices, default=EncoderKind.HISTOLOGY
    )
    is_default = models.BooleanField(default=False)
    is_next = models.BooleanField(
        default=False, help_text="Takes the default's place once it has embedded every lab"
    )

    class Meta:
        ordering = ("-is_default", "name", "version")
        constraints = (
            models.UniqueConstraint(
                fields=["name", "version", "config_hash"], name="encoder_unique"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class CanvasStain(models.Model):
    """The stains of a slide, estimated once by a method and used for each of its ROIs."""

    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="+")
    method = models.CharField(max_length=20)
    estimate = models.JSONField(help_text="As ml.roi.stain.stain_to_dict writes it")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["canvas", "method"], name="canvas_stain_unique"),
        )


class Embedding(models.Model):
    """A vector of one version of one ROI by one encoder. Its integer id is its id in the index.

    ``objects`` has those that searches may see; an index file is built of ``everything``, and what
    lies on a canvas in the bin is masked: it is there again the moment it is restored.

    Rows never change but for ``superseded_at``, which is set once: when the outline changed, the
    ROI was deleted, or a newer row took its place. A row without it is current.
    """

    id = models.BigAutoField(primary_key=True)
    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="+")
    encoder = models.ForeignKey(Encoder, on_delete=models.CASCADE, related_name="embeddings")
    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="embeddings")
    canvas = models.ForeignKey(
        Canvas,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="The ROI's, which never changes: a patient's embeddings are found by it",
    )
    roi_version = models.PositiveIntegerField()
    vector = models.BinaryField(help_text="float32, little-endian, encoder.dim values")
    patch_count = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0)
    superseded_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = LabOwnedManager()
    everything = LabOwnedQuerySet["Embedding"].as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["encoder", "roi", "roi_version"], name="embedding_unique"
            ),
        )
        indexes = (
            models.Index(
                fields=["lab", "encoder", "id"], condition=CURRENT, name="embedding_current"
            ),
            models.Index(
                fields=["encoder", "canvas"], condition=CURRENT, name="embedding_current_canvas"
            ),
            models.Index(fields=["lab", "encoder", "superseded_at"], name="embedding_superseded"),
        )

    @classmethod
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose canvas is not in the bin."""
        return rows.exclude(canvas__in=canvases_in_bin())


class Unembeddable(models.Model):
    """Why an ROI, as it is drawn now, has no vector by an encoder: ``no-tissue``, or an error.

    It is not tried again by itself; drawn anew, or asked for by a person, it is.
    """

    encoder = models.ForeignKey(Encoder, on_delete=models.CASCADE, related_name="+")
    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="unembeddable")
    code = models.CharField(max_length=60)
    message = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["encoder", "roi"], name="unembeddable_unique"),
        )


class Verdict(models.TextChoices):
    """What a person says of two regions."""

    ALIKE = "alike", "Alike"
    UNLIKE = "unlike", "Not alike"


class Judgement(LabOwned):
    """One person's word on whether another region is like the one she searched with.

    Her next search with the region goes by it, and encoders are measured against it.
    """

    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="judgements")
    other = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    verdict = models.CharField(max_length=8, choices=Verdict.choices)

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(fields=["roi", "other", "user"], name="judgement_unique"),
        )


class QuerySource(models.TextChoices):
    """What a query is made of."""

    AREA = "area", "Area"
    FRAME = "frame", "Video frame"
    PICTURE = "picture", "Picture"
    TISSUE = "tissue", "Tissue of a whole slide"
    ROIS = "rois", "ROIs of a whole slide"
    EXAMPLES = "examples", "Examples"


EMBEDDED_SOURCES = (
    QuerySource.AREA,
    QuerySource.FRAME,
    QuerySource.PICTURE,
    QuerySource.TISSUE,
)
"""Queries whose pixels a job turns into a vector; the others go by vectors that ROIs have."""


class Query(LabOwned):
    """What is searched with that is no ROI. It is kept for some days, so that it has an address.

    The outline is nobody's annotation; an uploaded picture is held here and nowhere else, as it
    came until the job has decoded it in a confined child, then as a JPEG.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    source = models.CharField(max_length=10, choices=QuerySource.choices)
    kind = models.CharField(max_length=20, choices=EncoderKind.choices)
    canvas = models.ForeignKey(Canvas, null=True, on_delete=models.CASCADE, related_name="+")
    geometry = models.JSONField(null=True, help_text="Of an area, in level-0 pixels")
    frame_pts = models.BigIntegerField(null=True)
    mpp = models.FloatField(null=True, help_text="Of a picture, as it was said")
    scale = models.FloatField(
        default=1.0, help_text="Looks for the same structures so many times as large"
    )
    upload = models.BinaryField(null=True, help_text="Of a picture, until it is decoded")
    picture = models.BinaryField(null=True, help_text="JPEG of a picture, once it is decoded")
    picture_mpp = models.FloatField(null=True, help_text="Of the JPEG, which may be reduced")
    width_px = models.PositiveIntegerField(default=0, help_text="Of the JPEG")
    height_px = models.PositiveIntegerField(default=0, help_text="Of the JPEG")
    liked = models.JSONField(default=list, help_text="ids of ROIs that hits should be like")
    unliked = models.JSONField(default=list, help_text="ids of ROIs that hits should not be like")
    encoder = models.ForeignKey(Encoder, null=True, on_delete=models.CASCADE, related_name="+")
    vector = models.BinaryField(null=True, help_text="float32, little-endian, encoder.dim values")

    class Meta:
        ordering = ("-created_at", "id")
        verbose_name_plural = "queries"

    def __str__(self) -> str:
        name = QuerySource(self.source).label
        return f"{name} on {self.canvas.name}" if self.canvas else name

    @property
    def is_ready(self) -> bool:
        """It has the vector that its source needs."""
        return self.source not in EMBEDDED_SOURCES or self.vector is not None

    @property
    def has_picture(self) -> bool:
        """False of examples, and of a picture that is not decoded yet."""
        return self.canvas_id is not None or self.width_px > 0

    @classmethod
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose canvas is not in the bin."""
        return rows.exclude(canvas__in=canvases_in_bin())


class IndexSnapshot(LabOwned):
    """An index file of one encoder and lab: what it held when it was written.

    It holds the current embeddings up to ``last_embedding_id`` as of ``read_at``; ``path``,
    relative to the storage root, is a folder of its own that is never changed. ``recall`` is the
    share of exact answers that its search found of a sample when it was written.
    """

    encoder = models.ForeignKey(Encoder, on_delete=models.CASCADE, related_name="snapshots")
    version = models.PositiveIntegerField()
    path = models.CharField(max_length=255)
    last_embedding_id = models.BigIntegerField()
    read_at = models.DateTimeField()
    count = models.PositiveIntegerField()
    kind = models.CharField(max_length=12, default="flat", help_text="As IndexStats.kind says")
    recall = models.FloatField(default=1.0)
    size_bytes = models.BigIntegerField(default=0)
    seconds = models.FloatField(default=0, help_text="From the first vector read to the last byte")

    class Meta:
        ordering = ("-version",)
        constraints = (
            models.UniqueConstraint(
                fields=["lab", "encoder", "version"], name="index_snapshot_unique"
            ),
        )
