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
    """What turns an ROI into a vector: name + version + hash of its configuration.

    One that has a ``lab`` was learned from that lab's archive: a linear map of the vectors of its
    ``base``, or what the base became where it ``is_trained``. Nobody else sees it or searches with
    it.
    """

    name = models.CharField(max_length=80)
    version = models.CharField(max_length=40)
    config_hash = models.CharField(max_length=64)
    dim = models.PositiveIntegerField()
    kind = models.CharField(
        max_length=20, choices=EncoderKind.choices, default=EncoderKind.HISTOLOGY
    )
    is_default = models.BooleanField(default=False)
    is_next = models.BooleanField(
        default=False, help_text="Becomes the default once it has embedded every lab"
    )
    lab = models.ForeignKey(
        Lab, null=True, on_delete=models.CASCADE, related_name="+", help_text="null for all labs"
    )
    base = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The encoder whose vectors it maps",
    )
    is_trained = models.BooleanField(
        default=False, help_text="A lab's own encoder that reads pixels itself and maps no vectors"
    )
    calibration = models.JSONField(null=True, help_text="For a lab's own encoder; see Calibration")

    class Meta:
        ordering = ("-is_default", "name", "version")
        constraints = (
            models.UniqueConstraint(
                fields=["name", "version", "config_hash"], name="encoder_unique"
            ),
            models.UniqueConstraint(
                fields=["lab", "kind"],
                condition=models.Q(is_default=True, lab__isnull=False),
                name="encoder_default_of_lab_unique",
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

    Rows never change except for ``superseded_at``, which is set once: when the outline changed, the
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
        help_text=(
            "Canvas of the ROI, which never changes; the embeddings of a patient are found by it"
        ),
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

    It is tried again only once it is redrawn or a person asks for it.
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


class TissueSample(LabOwned):
    """Squares of one size over a slide's tissue, and their vectors by one encoder.

    What is like a region of the slide is looked for among them. It grows part by part until it is
    complete. The person who asked first owns it: whoever may not know of their work on the slide
    (a blind reading) has one of their own.
    """

    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="+")
    encoder = models.ForeignKey(Encoder, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    side_px = models.PositiveIntegerField(help_text="Side of each square, in level-0 pixels")
    total = models.PositiveIntegerField(default=0, help_text="Squares in the tissue")
    tried = models.PositiveIntegerField(
        default=0, help_text="Squares tried, with and without a vector"
    )
    seconds = models.FloatField(default=0, help_text="Seconds that embedding them took")
    is_complete = models.BooleanField(default=False)
    boxes = models.BinaryField(default=b"", help_text="float32, little-endian: (N, 4), level 0")
    vectors = models.BinaryField(default=b"", help_text="float32, little-endian: (N, encoder.dim)")

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["canvas", "encoder", "side_px", "user"], name="tissue_sample_unique"
            ),
        )

    @classmethod
    def shown(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Those whose canvas is not in the bin."""
        return rows.exclude(canvas__in=canvases_in_bin())


class IndexSnapshot(LabOwned):
    """An index of one encoder and lab: what it held when it was written.

    It holds the current embeddings up to ``last_embedding_id`` as of ``read_at``; ``path``,
    relative to the storage root, is a folder of its own that is never changed. Where ``engine`` is
    qdrant it is the name of an index on that server, never changed either. ``recall`` is the
    share of exact answers that its search found of a sample when it was written.
    """

    encoder = models.ForeignKey(Encoder, on_delete=models.CASCADE, related_name="snapshots")
    version = models.PositiveIntegerField()
    engine = models.CharField(max_length=8, default="files", help_text="files or qdrant")
    path = models.CharField(max_length=255)
    last_embedding_id = models.BigIntegerField()
    read_at = models.DateTimeField()
    count = models.PositiveIntegerField()
    kind = models.CharField(max_length=12, default="flat", help_text="See IndexStats.kind")
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
