"""Erasure asked for by a manager: what it would take, the typed proof, and the job that does it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db import transaction

from portal.archive.models import Case
from portal.core.errors import InvalidInputError
from portal.core.events import event_emit
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.keeping.models import Backup, Erasure
from portal.keeping.rules import require_purge
from portal.keeping.services.erasing.acts import erasure_begin
from portal.keeping.services.erasing.inventory import inventory_of
from portal.labs.models import Lab, User

ERASE_KIND = "erasure_run"
COUNTED = ("slide", "video", "mosaic", "roi", "roirevision", "embedding", "followup")


@dataclass(frozen=True, slots=True)
class Preview:
    """What an erasure would take; nothing of it was touched.

    Attributes:
        typed: what has to be typed to prove that it is meant: the accession number, or, where all
            cases of a patient are, the patient's key.
        counts: rows by the name of their model. size_bytes: of originals that no other case has.
        backups: generations that still hold it.
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
    """What ``erasure_request`` would erase.

    Raises:
        ForbiddenError: not a manager.
    """
    require_purge(user, lab.pk)
    found = inventory_of(lab.pk, [case.pk for case in cases])
    rows = found.numbers
    originals = [one for one in found.originals if not one.is_shared]
    accessions = tuple(case.accession for case in cases)
    return Preview(
        typed=patient_key or accessions[0],
        accessions=accessions,
        counts={name: rows.get(name, 0) for name in COUNTED},
        originals=len(originals),
        size_bytes=sum(one.size_bytes for one in originals),
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
    """Put the cases into the bin and submit the job that erases them. Emits ``erasure.requested``.

    Raises:
        ForbiddenError: not a manager.
        InvalidInputError: what was typed is not the accession number (or the patient's key), or
            the reason names what is to be erased.
        ConflictError: something of it is still being prepared.
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
