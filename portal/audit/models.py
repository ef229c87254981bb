"""The audit log: append-only entries, and the seals that chain them.

An entry is one plain insert in the transaction that it records, so it never waits for another one.
Sealing follows within seconds: a seal holds the hash of the entry and of the previous seal of the
lab, so that a sealed entry cannot be changed, removed or inserted unnoticed. Both tables refuse
UPDATE and DELETE, here and by triggers in the database (``append_only``).
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, NoReturn, Self

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone

from portal.labs.models import Membership, Role, User
from portal.labs.models.people import hidden_q

INSTALLATION = uuid.UUID(int=0)
"""Lab id of entries without a lab, such as a sign-in with an unknown address."""


class AppendOnlyError(TypeError):
    """Attempt to change the audit log through the models."""


def _refuse() -> NoReturn:
    raise AppendOnlyError("The audit log is append-only.")


class AppendOnlyQuerySet(models.QuerySet[Any]):
    """Rows that can only be added and read."""

    def update(self, **fields: Any) -> NoReturn:
        """Refuse."""
        _refuse()

    def delete(self) -> NoReturn:
        """Refuse."""
        _refuse()

    def bulk_update(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse."""
        _refuse()

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Rows of the labs that the user manages, without the rows hidden from them."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        managed = Membership.objects.of(user).filter(role=Role.MANAGER)
        rows = self.filter(lab_id__in=managed.values("lab_id"))
        hidden = hidden_q(self.model, user)
        return rows if hidden is None else rows.exclude(hidden)


class AppendOnly(models.Model):
    """A row that is written once."""

    objects: ClassVar[Any] = AppendOnlyQuerySet.as_manager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **options: Any) -> None:
        """Insert the row; refused if it exists."""
        if not self._state.adding:
            _refuse()
        super().save(*args, force_insert=True)

    def delete(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse."""
        _refuse()


class Outcome(models.TextChoices):
    """Outcome of an action."""

    DONE = "done", "Done"
    REFUSED = "refused", "Refused"


class AuditEntry(AppendOnly):
    """An action of a user on an object, with ids and keyed hashes only: no text of a patient.

    Ids are not foreign keys: an entry outlives the object.
    """

    at = models.DateTimeField(default=timezone.now)
    lab_id = models.UUIDField()
    actor_id = models.UUIDField(null=True)
    token_id = models.UUIDField(null=True)
    action = models.CharField(max_length=40)
    outcome = models.CharField(max_length=8, choices=Outcome.choices, default=Outcome.DONE)
    kind = models.CharField(max_length=16, blank=True)
    object_id = models.UUIDField(null=True)
    case_id = models.UUIDField(null=True)
    address = models.CharField(max_length=45, blank=True)
    details = models.JSONField(default=dict)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=["lab_id", "id"], name="audit_by_lab"),
            models.Index(fields=["lab_id", "actor_id", "id"], name="audit_by_actor"),
            models.Index(fields=["case_id", "id"], name="audit_by_case"),
        )


class AuditSeal(AppendOnly):
    """Position of an entry in its lab's chain."""

    lab_id = models.UUIDField()
    number = models.PositiveBigIntegerField()
    entry = models.OneToOneField(
        AuditEntry, on_delete=models.DO_NOTHING, related_name="seal", db_constraint=False
    )
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ("lab_id", "number")
        constraints = (
            models.UniqueConstraint(fields=["lab_id", "number"], name="audit_seal_in_order"),
        )
