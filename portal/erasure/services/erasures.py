"""Erasure of cases, and its repetition after a restore."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from portal.archive.models import Case, TrashEntry, Upload
from portal.archive.services.assets import asset_purge
from portal.archive.services.trash import trash_purge, trash_put
from portal.archive.storage import files as storage
from portal.backups.repository import ErasedCases
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.core.storage_layout import entries_of
from portal.core.text import name_clean
from portal.embeddings.services.indexes import indexes_delete
from portal.erasure.models import Erasure, ErasureState
from portal.erasure.rules import require_erase
from portal.erasure.services.certificates import certificate_json, certificate_sha256
from portal.erasure.services.inventory import (
    Inventory,
    inventory_of,
    inventory_read,
)
from portal.erasure.services.texts import database_rewrite, texts_delete
from portal.explore.services.maps import maps_delete
from portal.jobs.models import ENDED_STATES, Job
from portal.jobs.services import job_cancel
from portal.jobs.worker.scratch import scratch_abandoned
from portal.labs.models import Lab, User
from portal.model_training.services.folders import learning_folders_drop


def cases_of(*, lab: Lab, accession: str = "", patient_key: str = "") -> list[Case]:
    """Cases of an accession number or of a patient's key, also those in the trash.

    Raises:
        NotFoundError: The lab has none.
    """
    cases = Case.all_objects.filter(lab=lab).order_by("created_at")
    if patient_key:
        chosen = list(cases.filter(patient_key=patient_key))
    else:
        chosen = list(cases.filter(accession=accession)) if accession else []
    if not chosen:
        raise NotFoundError("The lab has no such case, not even among the deleted ones.")
    return chosen


def erasure_begin(*, lab: Lab, cases: Collection[Case], user: User, reason: str) -> Erasure:
    """Create an erasure: move its cases into the trash and cancel their jobs.

    Raises:
        ForbiddenError: The user is not a manager.
        InvalidInputError: The reason contains names of the data to erase.
        ConflictError: A job still works on one of the cases.
    """
    require_erase(user, lab.pk)
    reason = name_clean(reason)[:200]
    inventory = inventory_of(lab.pk, [case.pk for case in cases])
    if any(word.lower() in reason.lower() for word in inventory.words):
        raise InvalidInputError("The reason is kept, so it must not name what is to be erased.")
    for job in _jobs_of(inventory, lab.pk):
        job_cancel(job=job, user=user)
    with transaction.atomic():
        for case in cases:
            if case.trash_entry_id is None:
                trash_put(item=case, user=user)
        return Erasure.objects.create(
            lab=lab, case_ids=[str(case.pk) for case in cases], reason=reason, requested_by=user
        )


def erasure_run(erasure: Erasure) -> Erasure:
    """Erase for good, search for remains, and write the certificate.

    Running it again continues after a failure and changes nothing after success.

    Raises:
        ConflictError: A job still works on one of the cases.
    """
    if erasure.state == ErasureState.DONE:
        return erasure
    if erasure.inventory or not erasure.certificate:
        _erase(erasure)
    is_gone = erasure.certificate["verified"]["is_gone"]
    erasure.certificate["verified"]["database_rewritten"] = database_rewrite()
    erasure.certificate["sha256"] = certificate_sha256(erasure.certificate)
    erasure.state = ErasureState.DONE if is_gone else ErasureState.FAILED
    erasure.error_message = "" if is_gone else "Some data is left; the certificate names it."
    erasure.finished_at = timezone.now()
    erasure.save()
    return erasure


def _erase(erasure: Erasure) -> None:
    """Delete rows and files, search for remains, and save the certificate.

    The inventory is saved in the transaction that deletes the rows: after a kill at any point, the
    next attempt still knows which files belonged to them.
    """
    case_ids = [uuid.UUID(pk) for pk in erasure.case_ids]
    saved = erasure.inventory
    inventory = inventory_read(saved["found"]) if saved else inventory_of(erasure.lab_id, case_ids)
    if _jobs_of(inventory, erasure.lab_id):
        raise ConflictError(
            "A job is still working on what is to be erased. Try again once it has stopped.",
            code="erasure-job-at-work",
        )
    with transaction.atomic():
        for entry in TrashEntry.objects.filter(target_id__in=case_ids):
            trash_purge(entry=entry, user=None, erase=True)
        Upload.objects.filter(pk__in=inventory.rows["archive.Upload"], case=None).delete()
        texts = texts_delete(inventory, lab_id=erasure.lab_id)
        indexes_delete(lab_id=erasure.lab_id)
        maps_delete(lab_id=erasure.lab_id)
        before: dict[str, int] = saved.get("texts", {})
        texts = {name: count + before.get(name, 0) for name, count in texts.items()}
        erasure.inventory = {"found": inventory.as_json(), "texts": texts}
        erasure.save(update_fields=["inventory"])
    learning_folders_drop(lab_id=erasure.lab_id)  # trainings start again, without the erased data
    for original in inventory.originals:  # copies that were in the orphan folder already
        asset_purge(lab_id=erasure.lab_id, sha256=original.sha256)
    upload_ids = {str(pk) for pk in Upload.objects.values_list("pk", flat=True)}
    for path in [
        *entries_of(inventory.ids),
        *scratch_abandoned(),
        *storage.incoming_abandoned(upload_ids),
    ]:
        storage.entry_drop(path)
    erasure.certificate = certificate_json(erasure, inventory, texts)
    if erasure.certificate["verified"]["is_gone"]:
        erasure.inventory = {}
    erasure.save(update_fields=["certificate", "inventory"])


def require_not_erasing(*, payload: Mapping[str, Any]) -> None:
    """Refuse to restore a case that is being erased. Handles ``trash.restored``."""
    pending = Erasure.objects.exclude(state=ErasureState.DONE).values_list("case_ids", flat=True)
    if any(payload["case_id"] in case_ids for case_ids in pending):
        raise ConflictError(
            "This case is being erased. It cannot be restored any more.", code="erasing"
        )


def erasure_repeat(erased: ErasedCases) -> bool:
    """Erase cases again that a restored backup brought back; whether there were any."""
    cases = list(Case.all_objects.filter(pk__in=erased["cases"]).select_related("lab"))
    if not cases:
        return False
    lab = cases[0].lab
    for job in _jobs_of(inventory_of(lab.pk, [case.pk for case in cases]), lab.pk):
        job.delete()  # its worker was lost with the machine
    for case in cases:
        if case.trash_entry_id is None:
            trash_put(item=case, user=None)
    erasure = Erasure.objects.create(
        lab=lab, case_ids=erased["cases"], reason=f"Again after a restore: {erased['erasure']}"
    )
    erasure_run(erasure)
    return True


def _jobs_of(inventory: Inventory, lab_id: uuid.UUID) -> list[Job]:
    """Jobs that have not ended and whose target is in the inventory."""
    waiting = Job.objects.filter(lab=lab_id).exclude(state__in=ENDED_STATES)
    return [job for job in waiting if str(job.target_id) in inventory.ids]
