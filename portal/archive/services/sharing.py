"""Writes: sharing a case with another lab, by name and for a time. Both labs get each event."""

from __future__ import annotations

import uuid
from datetime import date, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from portal.archive.models import Case, CaseShare, today
from portal.archive.rules import may_share, require_share
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.core.events import event_emit
from portal.labs.models import Lab, User
from portal.labs.services import attempt_forget, lab_name_try

LONGEST_SHARE = timedelta(days=366)  # a year: whoever still needs it shares again


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
    lab = _lab_guessed(with_lab, user=user, lab_id=case.lab_id)
    if lab.pk == case.lab_id:
        raise InvalidInputError("with_lab: the case belongs to this lab.")
    if not today() <= until <= today() + LONGEST_SHARE:
        raise InvalidInputError("until: expected a day from today to one year ahead.")
    return _offer(case, lab, until, user)


@transaction.atomic
def _offer(case: Case, lab: Lab, until: date, user: User) -> CaseShare:
    if not Case.objects.select_for_update().filter(pk=case.pk).exists():
        raise NotFoundError("No such case.")
    known = CaseShare.everything.filter(case=case, with_lab=lab, ended_at=None)
    for share in known:
        if share.state != "over":
            raise ConflictError(
                f"This case is already shared with {lab}. End that share first.",
                code="already-shared",
            )
        CaseShare.everything.filter(pk=share.pk).update(ended_at=timezone.now())
    share = CaseShare.everything.create(
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
    share = _locked(share)
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
    share = _locked(share)
    if share.ended_at is None:
        share.ended_at = timezone.now()
        share.save(update_fields=["ended_at", "updated_at"])
        _tell("share.ended", share, user)
    return share


def _lab_guessed(text: str, *, user: User, lab_id: uuid.UUID) -> Lab:
    """The lab of that name; each wrong name counts, whatever becomes of the offer."""
    counted = lab_name_try(user=user, lab_id=lab_id)
    lab = _lab_named(text)
    attempt_forget(counted)
    return lab


def _lab_named(text: str) -> Lab:
    found = list(Lab.objects.filter(Q(slug=text.strip()) | Q(name=text.strip()))[:2])
    if not found:
        raise InvalidInputError(
            "with_lab: no lab has this name. Ask the people of the lab for its exact name.",
            code="unknown-lab",
        )
    if len(found) > 1:
        raise InvalidInputError("with_lab: several labs have this name. Enter the short name.")
    return found[0]


def _locked(share: CaseShare) -> CaseShare:
    """The row as it is now, held until the end of the transaction."""
    rows = CaseShare.objects.select_for_update(of=("self",)).select_related("lab", "with_lab")
    row: CaseShare | None = rows.filter(pk=share.pk).first()
    if row is None:
        raise NotFoundError("There is no such share.")
    return row


def _tell(name: str, share: CaseShare, user: User) -> None:
    for lab_id in (share.lab_id, share.with_lab_id):
        event_emit(
            name,
            lab_id=lab_id,
            payload={
                "share_id": str(share.pk),
                "case_id": str(share.case_id),
                "owner": share.lab.slug,
                "with": share.with_lab.slug,
                "until": share.until.isoformat(),
                "by": str(user.pk),
            },
        )
