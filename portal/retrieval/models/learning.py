"""Metrics learned from a lab's archive."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.jobs.models import Job
from portal.labs.models import LabOwned
from portal.retrieval.models.vectors import Encoder, EncoderKind


class Learning(LabOwned):
    """One attempt to learn a metric from a lab's regions and judgements, and what it is worth.

    Its weights stay in the database, beside the vectors that they make: a backup has both or none.
    """

    kind = models.CharField(max_length=20, choices=EncoderKind.choices)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    base = models.ForeignKey(
        Encoder, on_delete=models.CASCADE, related_name="+", help_text="Whose vectors it maps"
    )
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="+")
    result = models.JSONField(null=True, help_text="As LearningResult; null until it is done")
    is_better = models.BooleanField(null=True, help_text="By the rule that the result names")
    encoder = models.OneToOneField(
        Encoder,
        null=True,
        on_delete=models.SET_NULL,
        related_name="learning",
        help_text="What was learned; null where nothing helped",
    )
    weights = models.BinaryField(null=True, help_text="A safetensors file")

    class Meta:
        ordering = ("-created_at", "id")

    def __str__(self) -> str:
        return str(self.encoder or f"Metric over {self.base}")

    @property
    def use(self) -> str:
        """``no``, ``preparing`` (the archive is being embedded) or ``yes`` (searches go by it)."""
        if self.encoder is None or not (self.encoder.is_default or self.encoder.is_next):
            return "no"
        return "yes" if self.encoder.is_default else "preparing"
