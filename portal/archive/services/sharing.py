"""Writes: sharing a case with another lab, by name and for a time. Both labs get each event."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import date, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from portal.archive.models import Case, CaseShare
from portal.archive.models.shares import today
from portal.archive.rules import may_share, require_share
from portal.archive.services.bulk import (
    BulkResult,
    cases_counted,
    cases_writable,
    completed,
    problem_of,
)
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from portal.core.events import event_emit, events_emit
from portal.labs.models import Lab, Role, User
from portal.labs.selectors import labs_with_role
from portal.labs.services.attempts import attempt_forget, lab_name_try

USUAL_SHARE = timedelta(days=30)  # default: a second opinion takes up to a month
LONGEST_SHARE = timedelta(days=366)  # then it has to be shared again


def share_offer(*, case: Case, with_lab: str, until: date, user: User) -> CaseShare:
    """Offer a case to the lab of exactly that name or short name: labs are not listed.

    Nobody there sees the case before one of its managers accepts. Emits ``share.offered``.

    Raises:
        ForbiddenError: not a manager of the case's lab.
        InvalidInputError: no such lab, several of that name, its own lab, or a day that is past
            or more than a year ahead.
        NotFoundError: the case was deleted in the meantime.
        ConflictError: it is shared with that lab already.
        TooManyRequestsError: too many names that no lab has, by this person or their lab.
    """
    require_share(user, case.lab_id)
    lab = _lab_by_name_limited(with_lab, user=user, lab_id=case.lab_id)
    if lab.pk == case.lab_id:
        raise InvalidInputError("with_lab: the case belongs to this lab.")
    _check_until(until)
    return _offer(case, lab, until, user)


def shares_offer(
    *, user: User, case_ids: Sequence[uuid.UUID], with_lab: str, until: date
) -> BulkResult:
    """Offer cases to the lab of exactly that name, in one transaction; see ``share_offer``.

    Emits ``share.offered`` for each.

    Args:
        case_ids: 1 to ``MAX_CASES``.
    Raises:
        ForbiddenError: the person manages no lab.
        InvalidInputError: too many cases, no such lab, several of that name, or an invalid day.
        TooManyRequestsError: too many names that no lab has.
    """
    ids = cases_counted(case_ids)
    _check_until(until)
    managed = labs_with_role(user, at_least=Role.MANAGER).first()
    if managed is None:
        raise ForbiddenError("You need the role of manager in a lab.")
    lab = _lab_by_name_limited(with_lab, user=user, lab_id=managed.pk)
    result = BulkResult()
    with transaction.atomic():
        cases = cases_writable(user, ids, result, at_least=Role.MANAGER)
        open_shares = CaseShare.all_objects.filter(case__in=cases, with_lab=lab, ended_at=None)
        shared = {share.case_id for share in open_shares if share.state != "over"}
        open_shares.filter(until__lt=today()).update(ended_at=timezone.now())
        offered: list[CaseShare] = []
        for case in cases:
            if case.lab_id == lab.pk:
                detail = "The case belongs to this lab."
                result.problems.append(problem_of(case, "own-lab", detail))
            elif case.pk in shared:
                detail = f"This case is already shared with {lab}."
                result.problems.append(problem_of(case, "already-shared", detail))
            else:
                offered.append(
                    CaseShare(
                        case=case, lab_id=case.lab_id, with_lab=lab, until=until, offered_by=user
                    )
                )
        CaseShare.all_objects.bulk_create(offered)
        owners = Lab.objects.in_bulk({share.lab_id for share in offered})
        for owner in owners.values():
            payloads = [
                _payload(share, owner, user) for share in offered if share.lab_id == owner.pk
            ]
            for lab_id in (owner.pk, lab.pk):
                events_emit("share.offered", lab_id=lab_id, payloads=payloads)
        result.changed.extend(share.case_id for share in offered)
    return completed(result, ids)


def _check_until(until: date) -> None:
    if not today() <= until <= today() + LONGEST_SHARE:
        raise InvalidInputError("until: expected a day from today to one year ahead.")


@transaction.atomic
def _offer(case: Case, lab: Lab, until: date, user: User) -> CaseShare:
    if not Case.objects.select_for_update().filter(pk=case.pk).exists():
        raise NotFoundError("No such case.")
    open_shares = CaseShare.all_objects.filter(case=case, with_lab=lab, ended_at=None)
    for share in open_shares:
        if share.state != "over":
            raise ConflictError(
                f"This case is already shared with {lab}. End that share first.",
                code="already-shared",
            )
        CaseShare.all_objects.filter(pk=share.pk).update(ended_at=timezone.now())
    share = CaseShare.all_objects.create(
        case=case, lab_id=case.lab_id, with_lab=lab, until=until, offered_by=user
    )
    _tell("share.offered", share, user)
    return share


@transaction.atomic
def share_accept(*, share: CaseShare, user: User) -> CaseShare:
    """Let the members of one's lab read the case; harmless twice. Emits ``share.accepted``.

    Raises:
        ForbiddenError: not a manager of the lab that it is shared with.
        ConflictError: it was ended, or its time is over.
    """
    require_share(user, share.with_lab_id)
    share = _lock_share(share)
    if share.state in {"ended", "over"}:
        raise ConflictError("This share has already ended.", code="share-over")
    if share.accepted_at is None:
        share.accepted_at = timezone.now()
        share.save(update_fields=["accepted_at", "updated_at"])
        _tell("share.accepted", share, user)
    return share


@transaction.atomic
def share_end(*, share: CaseShare, user: User) -> CaseShare:
    """Take a share back, decline it, or give it up: the other lab sees nothing from now on.

    Harmless twice. Emits ``share.ended``.

    Raises:
        ForbiddenError: not a manager of either lab.
    """
    if not may_share(user, share.with_lab_id):
        require_share(user, share.lab_id)
    share = _lock_share(share)
    if share.ended_at is None:
        share.ended_at = timezone.now()
        share.save(update_fields=["ended_at", "updated_at"])
        _tell("share.ended", share, user)
    return share


def _lab_by_name_limited(text: str, *, user: User, lab_id: uuid.UUID) -> Lab:
    """The lab of this name. Wrong names are counted, so that names cannot be guessed."""
    attempt = lab_name_try(user=user, lab_id=lab_id)
    lab = _lab_named(text)
    attempt_forget(attempt)
    return lab


def _lab_named(text: str) -> Lab:
    labs = list(Lab.objects.filter(Q(slug=text.strip()) | Q(name=text.strip()))[:2])
    if not labs:
        raise InvalidInputError(
            "with_lab: no lab has this name. Ask the people of the lab for its exact name.",
            code="unknown-lab",
        )
    if len(labs) > 1:
        raise InvalidInputError("with_lab: several labs have this name. Enter the short name.")
    return labs[0]


def _lock_share(share: CaseShare) -> CaseShare:
    """The row as it is now, held until the end of the transaction."""
    rows = CaseShare.objects.select_for_update(of=("self",)).select_related("lab", "with_lab")
    row: CaseShare | None = rows.filter(pk=share.pk).first()
    if row is None:
        raise NotFoundError("There is no such share.")
    return row


def _tell(name: str, share: CaseShare, user: User) -> None:
    for lab_id in (share.lab_id, share.with_lab_id):
        event_emit(name, lab_id=lab_id, payload=_payload(share, share.lab, user))


def _payload(share: CaseShare, owner: Lab, user: User) -> dict[str, str]:
    return {
        "share_id": str(share.pk),
        "case_id": str(share.case_id),
        "owner": owner.slug,
        "with": share.with_lab.slug,
        "until": share.until.isoformat(),
        "by": str(user.pk),
    }
