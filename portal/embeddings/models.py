"""Encoders, embeddings and the index files derived from them."""

from __future__ import annotations

from typing import Any

from django.db import models

from portal.annotations.models import Roi
from portal.archive.models import Canvas, Modality
from portal.archive.models.records import canvases_in_trash
from portal.core.models import BaseModel
from portal.labs.models import Lab, LabOwned
from portal.labs.models.people import LabOwnedManager, LabOwnedQuerySet

CURRENT = models.Q(superseded_at__isnull=True)
"""Condition on embeddings that searches may find."""


class Encoder(BaseModel):
    """Model that turns an ROI into a vector, identified by name, version and configuration hash.

    An encoder with a ``lab`` was learned from that lab's archive: a linear map of the vectors of
    its ``base``, or the fine-tuned base where it ``is_trained``. Only that lab sees it and searches
    with it.
    """

    name = models.CharField(max_length=80)
    version = models.CharField(max_length=40)
    config_hash = models.CharField(max_length=64)
    dim = models.PositiveIntegerField()
    kind = models.CharField(max_length=20, choices=Modality.choices, default=Modality.HISTOLOGY)
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
    """Stains of a slide, estimated once per method and used for all its ROIs."""

    canvas = models.ForeignKey(Canvas, on_delete=models.CASCADE, related_name="+")
    method = models.CharField(max_length=20)
    estimate = models.JSONField(help_text="As ml.roi.stain.storage.stain_to_dict writes it")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["canvas", "method"], name="canvas_stain_unique"),
        )


class Embedding(models.Model):
    """Vector of one version of an ROI by one encoder. Its integer id is its id in the index.

    ``objects`` has the rows that searches may see. An index file is built from ``all_objects``;
    embeddings on a canvas in the trash are masked, so that a restored canvas is found at once.

    Rows never change except for ``superseded_at``, which is set once: when the outline changed, the
    ROI was deleted, or a newer row replaced it. A row without it is current.
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
    all_objects = LabOwnedQuerySet["Embedding"].as_manager()

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
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose canvas is not in the trash."""
        return rows.exclude(canvas__in=canvases_in_trash())


class Unembeddable(models.Model):
    """Reason for an ROI, as drawn now, to have no vector by an encoder: ``no-tissue`` or an error.

    Retried only after the ROI is redrawn or a person asks for it.
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


class IndexSnapshot(LabOwned):
    """An index of one encoder and lab, with a record of its content.

    It holds the current embeddings up to ``last_embedding_id`` as of ``read_at``. ``path`` is a
    folder relative to the storage root or, if ``engine`` is milvus, the name of an index on that
    server; neither ever changes. ``recall`` is the share of exact answers that its search found for
    a sample when it was written.
    """

    encoder = models.ForeignKey(Encoder, on_delete=models.CASCADE, related_name="snapshots")
    version = models.PositiveIntegerField()
    engine = models.CharField(max_length=8, default="files", help_text="files or milvus")
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
