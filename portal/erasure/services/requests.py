"""Erasure on a manager's request: preview, typed confirmation, job."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db import transaction

from portal.archive.models import Case
from portal.backups.models import Backup
from portal.core.errors import InvalidInputError
from portal.core.events import event_emit
from portal.erasure.models import Erasure
from portal.erasure.rules import require_erase
from portal.erasure.services.erasures import erasure_begin
from portal.erasure.services.inventory import inventory_of
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab, User

ERASE_KIND = "erasure_run"
COUNTED = ("slide", "video", "mosaic", "roi", "roirevision", "embedding", "followup")


@dataclass(frozen=True, slots=True)
class Preview:
    """Extent of an erasure; computing it changes nothing.

    Attributes:
        typed: Text to type as confirmation: the accession number, or, for all cases of a patient,
            the patient's key.
        counts: Rows by the name of their model.
        size_bytes: Size of the originals that no other case has.
        backups: Generations that still contain the data.
    """

    typed: str
    accessions: tuple[str, ...]
    counts: dict[str, int]
    originals: int
    size_bytes: int
    backups: int


def erasure_preview(
    *, lab: Lab, cases: Collection[Case], user: User, patient_key: str = ""
) -> Preview:
    """Extent of an ``erasure_request``.

    Raises:
        ForbiddenError: The user is not a manager.
    """
    require_erase(user, lab.pk)
    inventory = inventory_of(lab.pk, [case.pk for case in cases])
    rows = inventory.numbers
    originals = [original for original in inventory.originals if not original.is_shared]
    accessions = tuple(case.accession for case in cases)
    return Preview(
        typed=patient_key or accessions[0],
        accessions=accessions,
        counts={name: rows.get(name, 0) for name in COUNTED},
        originals=len(originals),
        size_bytes=sum(original.size_bytes for original in originals),
        backups=Backup.objects.filter(gone_at=None).count(),
    )


def erasure_request(
    *,
    lab: Lab,
    cases: Collection[Case],
    user: User,
    typed: str,
    patient_key: str = "",
    reason: str = "",
) -> tuple[Erasure, Job]:
    """Put the cases into the trash and submit the job that erases them.

    Emits ``erasure.requested``.

    Raises:
        ForbiddenError: The user is not a manager.
        InvalidInputError: The typed text is not the accession number (or the patient's key), or
            the reason contains names of the data to erase.
        ConflictError: A job still works on one of the cases.
    """
    preview = erasure_preview(lab=lab, cases=cases, user=user, patient_key=patient_key)
    if typed.strip() != preview.typed:
        raise InvalidInputError(
            "typed: this does not match what is to be erased.", code="not-confirmed"
        )
    with transaction.atomic():
        erasure = erasure_begin(lab=lab, cases=cases, user=user, reason=reason)
        event_emit(
            "erasure.requested",
            lab_id=lab.pk,
            payload={"erasure_id": str(erasure.pk), "by": str(user.pk)},
        )
        job = job_submit(
            kind=ERASE_KIND,
            args={"erasure_id": str(erasure.pk)},
            lab=lab,
            user=user,
            target=erasure,
            target_name="Erasure",
        )
    return erasure, job
