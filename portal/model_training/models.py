"""Metrics learned from a lab's archive, and encoders trained on it."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.archive.models import Modality
from portal.embeddings.models import Encoder
from portal.jobs.models import Job
from portal.labs.models import LabOwned


class LearningMethod(models.TextChoices):
    """Kind of model that is learned."""

    METRIC = "metric", "Adjusted search model"
    ENCODER = "encoder", "Retrained search model"


class Learning(LabOwned):
    """Metric or encoder learned from a lab's regions and judgements, with its evaluation.

    A metric maps the vectors of the base; an encoder is fine-tuned from the base on the pixels of
    the regions. The weights are stored in the database with the vectors that they make, so that a
    backup has both or none.
    """

    kind = models.CharField(max_length=20, choices=Modality.choices)
    method = models.CharField(
        max_length=8, choices=LearningMethod.choices, default=LearningMethod.METRIC
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    base = models.ForeignKey(
        Encoder,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The encoder that it is learned over",
    )
    compared_with = models.ForeignKey(
        Encoder,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The encoder of the lab's searches when it was compared; null until then",
    )
    steps = models.PositiveIntegerField(
        null=True, help_text="Of the training of an encoder, at most"
    )
    hours = models.FloatField(null=True, help_text="After which it ends with fewer steps")
    trained_s = models.FloatField(default=0, help_text="Seconds spent so far")
    training = models.JSONField(null=True, help_text="As TrainingSummary; null until it is done")
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="+")
    result = models.JSONField(null=True, help_text="As LearningResult; null until it is done")
    is_better = models.BooleanField(null=True, help_text="Better by the rule that the result names")
    encoder = models.OneToOneField(
        Encoder,
        null=True,
        on_delete=models.SET_NULL,
        related_name="learning",
        help_text="What was learned; null if nothing helped",
    )
    weights = models.BinaryField(null=True, help_text="A safetensors file")

    class Meta:
        ordering = ("-created_at", "id")

    def __str__(self) -> str:
        return str(self.encoder or self.get_method_display())

    @property
    def use(self) -> str:
        """``no``, ``preparing`` (the archive is being embedded) or ``yes`` (searches use it)."""
        if self.encoder is None or not (self.encoder.is_default or self.encoder.is_next):
            return "no"
        return "yes" if self.encoder.is_default else "preparing"
