"""What is known of backups, and of what was erased."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.core.models import BaseModel
from portal.labs.models import LabOwned


class Backup(BaseModel):
    """A generation of a backup: where it lies, when its database was read, what it holds.

    An erasure lists the generations whose ``gone_at`` is empty.
    """

    destination = models.CharField(max_length=500)
    name = models.CharField(max_length=60)
    taken_at = models.DateTimeField(db_index=True)
    files = models.PositiveBigIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    new_bytes = models.PositiveBigIntegerField(default=0)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-taken_at",)
        constraints = (
            models.UniqueConstraint(fields=["destination", "name"], name="backup_unique"),
        )

    def __str__(self) -> str:
        return f"{self.name} in {self.destination}"


class ErasureState(models.TextChoices):
    """Where an erasure stands."""

    PENDING = "pending", "Under way"
    DONE = "done", "Erased"
    FAILED = "failed", "Failed"


class Erasure(LabOwned):
    """Cases of a patient that were erased, or are being erased; with the certificate of it.

    It names the cases by ids that mean nothing once they are gone. Accession numbers and the
    patient's key are in the certificate as keyed hashes: who has one can prove that it is meant.
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
        default=dict, help_text="What is to be erased, until it is: a killed erasure continues"
    )

    class Meta:
        ordering = ("-created_at", "id")
