"""Maps of a lab's regions, and labels that somebody looked at and found right."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.annotations.models import Label, Roi
from portal.labs.models import LabOwned
from portal.retrieval.models.vectors import Encoder


class RegionMap(LabOwned):
    """All regions of a lab that one encoder embedded, laid out on a plane; it is never changed.

    It names embeddings and says nothing of them: whoever looks at it sees those that they may see
    now, with their present labels. Rows (N) are in the order of ``ids``.
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
    places = models.BinaryField(help_text="uint16, little-endian: (N, 2), of the plane's side")
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
    """Somebody looked at a region that looks unlike its label, and the label is right."""

    roi = models.ForeignKey(Roi, on_delete=models.CASCADE, related_name="+")
    label = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["roi", "label"], name="label_confirmation_unique"),
        )
