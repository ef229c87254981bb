"""Reads of shares: those given and received by a lab, and the share that shows a user a case."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from portal.archive.models import Case, CaseShare
from portal.archive.models.shares import CaseShareQuerySet
from portal.core.errors import NotFoundError
from portal.labs.models import Lab, Membership, Role, User
from portal.labs.rules import has_role


def share_seen(user: User, case: Case) -> CaseShare | None:
    """The share by which this person reads a case; None if they are a member of its lab.

    The caller has found the case visible. One query.
    """
    memberships = Membership.objects.of(user).values("lab_id")
    live: QuerySet[CaseShare] = CaseShare.objects.live().filter(case=case, with_lab__in=memberships)
    return (
        live.exclude(lab__in=memberships)
        .select_related("lab", "with_lab")
        .order_by("-until")
        .first()
    )


def shares_of_case(user: User, case: Case) -> CaseShareQuerySet:
    """Shares of a case that the person may see, newest first, including ended ones.

    For another lab's case: only shares with their own labs.
    """
    shares: CaseShareQuerySet = CaseShare.objects.visible_to(user).filter(case=case)
    return shares.select_related("lab", "with_lab", "offered_by", "case")


def shares_given(user: User, *, lab: Lab) -> QuerySet[CaseShare]:
    """Open shares of the lab's cases, the newest first. For its members."""
    return _open(user).filter(lab=lab)


def shares_received(user: User, *, lab: Lab) -> QuerySet[CaseShare]:
    """Open shares with the lab, newest first; offers only for its managers."""
    shares = _open(user).filter(with_lab=lab)
    is_manager = has_role(user, lab.pk, at_least=Role.MANAGER)
    return shares if is_manager else shares.exclude(accepted_at=None)


def shared_count(user: User, *, lab: Lab | None) -> int:
    """Number of cases that other labs share with the lab; None: with any of the person's labs."""
    live = CaseShare.objects.live().filter(
        with_lab__in=Membership.objects.of(user).values("lab_id")
    )
    return (live.filter(with_lab=lab) if lab else live).count()


def share_list(user: User) -> QuerySet[CaseShare]:
    """Open shares that this person's labs gave or got, the newest first."""
    return _open(user)


def share_get(user: User, share_id: uuid.UUID) -> CaseShare:
    """A share, ended or not; ``NotFoundError`` also where it is between other labs."""
    shares = CaseShare.objects.visible_to(user).select_related("lab", "with_lab", "case")
    share: CaseShare | None = shares.filter(pk=share_id).first()
    if share is None:
        raise NotFoundError("There is no such share.")
    return share


def _open(user: User) -> QuerySet[CaseShare]:
    shares: QuerySet[CaseShare] = CaseShare.objects.visible_to(user).open()
    return shares.select_related("lab", "with_lab", "offered_by", "case")
