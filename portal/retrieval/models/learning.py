"""Metrics learned from a lab's archive, and encoders trained on it."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.jobs.models import Job
from portal.labs.models import LabOwned
from portal.retrieval.models.vectors import Encoder, EncoderKind


class LearningMethod(models.TextChoices):
    """What is learned."""

    METRIC = "metric", "Metric"
    ENCODER = "encoder", "Encoder"


class Learning(LabOwned):
    """One attempt to learn from a lab's regions and judgements, and what it is worth.

    A metric maps the vectors of the base; an encoder starts from the base and learns from the
    pixels of the regions. Its weights stay in the database, beside the vectors that they make: a
    backup has both or none.
    """

    kind = models.CharField(max_length=20, choices=EncoderKind.choices)
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
    training = models.JSONField(null=True, help_text="As TrainingTold; null until it is done")
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
        return str(self.encoder or f"{self.get_method_display()} over {self.base}")

    @property
    def use(self) -> str:
        """``no``, ``preparing`` (the archive is being embedded) or ``yes`` (searches use it)."""
        if self.encoder is None or not (self.encoder.is_default or self.encoder.is_next):
            return "no"
        return "yes" if self.encoder.is_default else "preparing"
