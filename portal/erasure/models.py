"""Erasures and their certificates."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.labs.models import LabOwned


class ErasureState(models.TextChoices):
    PENDING = "pending", "Under way"
    DONE = "done", "Erased"
    FAILED = "failed", "Failed"


class Erasure(LabOwned):
    """Erasure of cases of a patient, with its certificate.

    Cases are named by ids that mean nothing once they are gone. The certificate holds accession
    numbers and the patient's key as keyed hashes, so that whoever has one can prove a match.
    """

    state = models.CharField(
        max_length=8, choices=ErasureState.choices, default=ErasureState.PENDING
    )
    case_ids = models.JSONField(default=list)
    reason = models.CharField(max_length=200, blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    finished_at = models.DateTimeField(null=True, blank=True)
    error_message = models.TextField(blank=True)
    certificate = models.JSONField(default=dict)
    inventory = models.JSONField(
        default=dict, help_text="Data to erase, emptied once it is gone: a killed erasure continues"
    )

    class Meta:
        ordering = ("-created_at", "id")
