"""Cases that another lab may read for a time."""

from __future__ import annotations

from datetime import date
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.utils import timezone

from portal.labs.models import Lab, LabOwned, Membership, User
from portal.labs.models.people import LabOwnedQuerySet, WithoutTrashedManager


class CaseShareQuerySet(LabOwnedQuerySet["CaseShare"]):
    """Shares, seen by both labs; begin every query with ``visible_to``."""

    def open(self) -> Self:
        """Offered or accepted, neither ended nor over."""
        return self.filter(ended_at=None, until__gte=today())

    def live(self) -> Self:
        """Shares that let the other lab read: open and accepted."""
        return self.open().exclude(accepted_at=None)


CaseShareManager = WithoutTrashedManager.from_queryset(CaseShareQuerySet)


class CaseShare(LabOwned):
    """A case, to be read by the members of one other lab, until the end of a day (UTC).

    ``lab`` is that of the case. A manager there offers it, one of the other lab accepts it, either
    ends it. Rows stay, as a record.
    """

    case = models.ForeignKey("archive.Case", on_delete=models.CASCADE, related_name="shares")
    with_lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="+")
    until = models.DateField()
    offered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    accepted_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    objects = CaseShareManager()  # type: ignore[misc,assignment]  # narrower than the one inherited
    all_objects = CaseShareQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["case", "with_lab"],
                condition=models.Q(ended_at=None),
                name="case_share_once",
            ),
        )
        indexes = (models.Index(fields=["with_lab", "until"], name="case_share_received"),)

    def __str__(self) -> str:
        return f"{self.case} with {self.with_lab}"

    @property
    def state(self) -> str:
        """``offered``, ``accepted``, ``over`` (past its last day) or ``ended`` (by a person)."""
        if self.ended_at is not None:
            return "ended"
        if self.until < today():
            return "over"
        return "offered" if self.accepted_at is None else "accepted"

    @classmethod
    def without_trashed(cls, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Rows whose case is not in the trash."""
        return rows.filter(case__trash_entry=None)

    @classmethod
    def shared_with(cls, user: User) -> models.Q | None:
        """Shares with a lab of the person's."""
        return models.Q(with_lab_id__in=Membership.objects.of(user).values("lab_id"))


def today() -> date:
    """The day in UTC, by which shares end."""
    return timezone.now().date()


def cases_shared_with(user: User) -> models.QuerySet[CaseShare, Any]:
    """Ids of the cases that other labs share with one of the person's, as a subquery."""
    memberships = Membership.objects.of(user).values("lab_id")
    live: Any = CaseShare.all_objects.live().filter(with_lab__in=memberships)
    return live.order_by().values("case_id")  # type: ignore[no-any-return]
