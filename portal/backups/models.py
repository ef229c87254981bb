"""Records of backups."""

from __future__ import annotations

from django.db import models

from portal.core.models import BaseModel


class Backup(BaseModel):
    """Generation of a backup that this installation made or was restored from.

    ``gone_at`` is set when it is removed; certificates of erasure list the others.
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
