"""Maps of a lab's regions, confirmed labels, and tissue samples of slides."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from portal.annotations.models import Label, Roi
from portal.archive.models import Canvas
from portal.archive.models.records import canvases_in_trash
from portal.embeddings.models import Encoder
from portal.labs.models import LabOwned


class RegionMap(LabOwned):
    """Layout on a plane of all regions of a lab that one encoder embedded; never changed.

    It stores only ids of embeddings: viewers see the regions that are visible to them now, with
    their present labels. Rows (N) are in the order of ``ids``.
    """

    encoder = models.ForeignKey(Encoder, on_delete=models.CASCADE, related_name="+")
    last_embedding_id = models.BigIntegerField()
    left_out = models.PositiveIntegerField(default=0, help_text="Older ones, beyond the limit")
    laid_out = models.PositiveIntegerField(help_text="Number of rows that the plane was made from")
    radius = models.FloatField(help_text="For near-duplicates: pairs no farther apart than this")
    is_calibrated = models.BooleanField(
        help_text="Whether ``radius`` is calibrated; otherwise only copies are found"
    )
    seconds = models.FloatField(default=0)
    ids = models.BinaryField(help_text="int64, little-endian: (N,) embeddings, ascending")
    positions = models.BinaryField(help_text="uint16, little-endian: (N, 2), of the plane's side")
    neighbours = models.BinaryField(
        help_text="int32, little-endian: (N, k) rows, of other patients"
    )
    distances = models.BinaryField(help_text="float32, little-endian: (N, k) of ``neighbours``")
    pairs = models.BinaryField(
        help_text="int32, little-endian: (P, 2) rows, those of other cases first"
    )
    pair_distances = models.BinaryField(help_text="float32, little-endian: (P,)")
    pairs_cut = models.BooleanField(default=False, help_text="There were more pairs")

    class Meta:
        ordering = ("-created_at", "id")


class LabelConfirmation(LabOwned):
    """Confirmation by a person that the label of an outlier is right."""

    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="+")
    label = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["roi", "label"], name="label_confirmation_unique"),
        )


class TissueSample(LabOwned):
    """Equal squares over a slide's tissue, and their vectors by one encoder.

    Similar regions of the slide are searched among them. The sample grows in parts until it is
    complete. It belongs to the person who requested it first: a blinded reader, who must not learn
    of another's work on the slide, gets a separate sample.
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
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose canvas is not in the trash."""
        return rows.exclude(canvas__in=canvases_in_trash())
