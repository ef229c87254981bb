"""The act of erasing, its proof, and its repetition after a restore."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from django.apps import apps
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from ml.types import JsonObject
from portal.archive import storage
from portal.archive.models import BinEntry, Case, Upload
from portal.archive.services import asset_purge, bin_purge, bin_put
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.core.storage_layout import Place, entries_of, unknown_entries
from portal.core.text import name_clean
from portal.jobs.models import ENDED, Job
from portal.jobs.services import job_cancel
from portal.jobs.worker.scratch import scratch_abandoned
from portal.keeping.models import Backup, Erasure, ErasureState
from portal.keeping.rules import require_purge
from portal.keeping.services.erasing.inventory import (
    MIN_WORD_LENGTH,
    Inventory,
    files_left,
    inventory_of,
    inventory_read,
    rows_left,
)
from portal.keeping.services.erasing.scrub import database_rewrite, texts_delete, words_left
from portal.keeping.services.erasing.tables import WITH_CASE, rule_of
from portal.keeping.vault import Vault
from portal.labs.models import Lab, User
from portal.retrieval.services import indexes_forget, learning_folders_drop


def cases_of(*, lab: Lab, accession: str = "", patient_key: str = "") -> list[Case]:
    """The cases of an accession number or of a patient's key, in the bin or not.

    Raises:
        NotFoundError: the lab has none.
    """
    cases = Case.everything.filter(lab=lab).order_by("created_at")
    if patient_key:
        found = list(cases.filter(patient_key=patient_key))
    else:
        found = list(cases.filter(accession=accession)) if accession else []
    if not found:
        raise NotFoundError("The lab has no such case, not even among the deleted ones.")
    return found


def erasure_begin(*, lab: Lab, cases: Collection[Case], user: User, reason: str) -> Erasure:
    """Put the cases into the bin and write down that they are to be erased; stops work on them.

    Raises:
        ForbiddenError: not a manager.
        InvalidInputError: the reason names what is to be erased.
        ConflictError: a job is still at work on one of them; try again once it has stopped.
    """
    require_purge(user, lab.pk)
    reason = name_clean(reason)[:200]
    found = inventory_of(lab.pk, [case.pk for case in cases])
    if any(word.lower() in reason.lower() for word in found.words):
        raise InvalidInputError("The reason is kept, so it must not name what is to be erased.")
    for job in _jobs_of(found, lab.pk):
        job_cancel(job=job, user=user)
    with transaction.atomic():
        for case in cases:
            if case.bin_entry_id is None:
                bin_put(item=case, user=user)
        return Erasure.objects.create(
            lab=lab, case_ids=[str(case.pk) for case in cases], reason=reason, requested_by=user
        )


def erasure_run(erasure: Erasure) -> Erasure:
    """Erase for good, look whether it is gone, and write the certificate.

    Running it again after a failure continues; one that is done stays as it is.

    Raises:
        ConflictError: a job is still at work on one of the cases; try again once it has ended.
    """
    if erasure.state == ErasureState.DONE:
        return erasure
    if erasure.inventory or not erasure.certificate:
        _erase(erasure)
    is_gone = erasure.certificate["verified"]["is_gone"]
    erasure.certificate["verified"]["database_rewritten"] = database_rewrite()
    erasure.certificate["sha256"] = _sha256(erasure.certificate)
    erasure.state = ErasureState.DONE if is_gone else ErasureState.FAILED
    erasure.error_message = "" if is_gone else "Something is left over; the certificate names it."
    erasure.finished_at = timezone.now()
    erasure.save()
    return erasure


def _erase(erasure: Erasure) -> None:
    """Delete rows and files, look for them, and keep what was found as the certificate.

    What there is was written down before the first row goes: killed at any point, the next attempt
    still knows which files belong to rows that are gone.
    """
    case_ids = [uuid.UUID(pk) for pk in erasure.case_ids]
    kept = erasure.inventory
    found = inventory_read(kept["found"]) if kept else inventory_of(erasure.lab_id, case_ids)
    if _jobs_of(found, erasure.lab_id):
        raise ConflictError(
            "A job is still working on what is to be erased. Try again once it has stopped.",
            code="erasure-job-at-work",
        )
    with transaction.atomic():
        for entry in BinEntry.objects.filter(target_id__in=case_ids):
            bin_purge(entry=entry, user=None, erase=True)
        Upload.objects.filter(pk__in=found.rows["archive.Upload"], case=None).delete()
        texts = texts_delete(found, lab_id=erasure.lab_id)
        indexes_forget(lab_id=erasure.lab_id)
        before: dict[str, int] = kept.get("texts", {})
        texts = {name: count + before.get(name, 0) for name, count in texts.items()}
        erasure.inventory = {"found": found.as_json(), "texts": texts}
        erasure.save(update_fields=["inventory"])
    learning_folders_drop(lab_id=erasure.lab_id)  # a training begins again, without what is erased
    for original in found.originals:  # copies that were in the trash already
        asset_purge(lab_id=erasure.lab_id, sha256=original.sha256)
    known = {str(pk) for pk in Upload.objects.values_list("pk", flat=True)}
    for path in [
        *entries_of(found.ids),
        *scratch_abandoned(),
        *storage.incoming_abandoned(known),
    ]:
        storage.entry_drop(path)
    erasure.certificate = _certificate_json(erasure, found, texts)
    if erasure.certificate["verified"]["is_gone"]:
        erasure.inventory = {}
    erasure.save(update_fields=["certificate", "inventory"])


def require_not_erasing(*, payload: Mapping[str, Any]) -> None:
    """Refuse to bring back from the bin what is being erased. Heard from ``bin.restored``."""
    pending = Erasure.objects.exclude(state=ErasureState.DONE).values_list("case_ids", flat=True)
    if any(payload["case_id"] in one for one in pending):
        raise ConflictError(
            "This case is being erased. It cannot be restored any more.", code="erasing"
        )


def erasures_pass_on(vault: Vault) -> list[str]:
    """Tell a destination of backups what was erased; returns its generations that still hold it."""
    done = Erasure.objects.filter(state=ErasureState.DONE).order_by("finished_at")
    known = {row["erasure"]: row for row in vault.erasures()}
    for erasure in done:
        known[str(erasure.pk)] = {
            "erasure": str(erasure.pk),
            "cases": erasure.case_ids,
            "at": erasure.finished_at.isoformat() if erasure.finished_at else "",
        }
    if known:
        vault.erasures_write(list(known.values()))
    last = max((row["at"] for row in known.values()), default="")
    return [name for name in vault.names() if vault.manifest(name).taken_at < last]


def erasures_repeat(vault: Vault) -> int:
    """Erase again what an earlier backup brought back; returns how many erasures that took."""
    count = 0
    for row in vault.erasures():
        cases = list(Case.everything.filter(pk__in=row["cases"]).select_related("lab"))
        if not cases:
            continue
        lab = cases[0].lab
        for job in _jobs_of(inventory_of(lab.pk, [case.pk for case in cases]), lab.pk):
            job.delete()  # of the machine that was lost: nobody is at work on it
        for case in cases:
            if case.bin_entry_id is None:
                bin_put(item=case, user=None)
        erasure = Erasure.objects.create(
            lab=lab, case_ids=row["cases"], reason=f"Again after a restore: {row['erasure']}"
        )
        erasure_run(erasure)
        count += 1
    return count


def _jobs_of(found: Inventory, lab_id: uuid.UUID) -> list[Job]:
    """Jobs that have not ended and work on what was found."""
    waiting = Job.objects.filter(lab=lab_id).exclude(state__in=ENDED)
    return [job for job in waiting if str(job.target_id) in found.ids]


def _certificate_json(erasure: Erasure, found: Inventory, texts: dict[str, int]) -> JsonObject:
    """Certificate of what was erased, by whom and when, and what a search afterwards found."""
    left, files = rows_left(found), files_left(found)
    searched = [word for word in found.words if len(word) >= MIN_WORD_LENGTH]
    return {
        "format": 1,
        "erasure": str(erasure.pk),
        "lab": erasure.lab.slug,
        "requested_at": erasure.created_at.isoformat(),
        "requested_by": erasure.requested_by.email if erasure.requested_by else None,
        "reason": erasure.reason,
        "finished_at": timezone.now().isoformat(),
        "cases": erasure.case_ids,
        "names": sorted(_keyed(word) for word in found.words),
        "rows": found.numbers | texts,
        "originals": [asdict(one) for one in found.originals],
        "places": {place.name.lower(): str(place.erased) for place in Place},
        "tables": {
            model._meta.label: str(rule_of(model) or WITH_CASE)
            for model in apps.get_models(include_auto_created=True)
        },
        "verified": {
            "is_gone": not left and not files,
            "rows_left": left,
            "files_left": files,
            "names_left_in": words_left(found),
            "names_too_short_to_search": len(found.words) - len(searched),
        },
        "backups": [
            {"destination": backup.destination, "name": backup.name}
            for backup in Backup.objects.filter(gone_at=None)
        ],
        "remains": {
            "backups": "until they are removed: backup --forget-erased",
            "audit_log": "its entries, which name cases and people by ids alone",
            "not_searched": unknown_entries(),
        },
    }


def _sha256(certificate: JsonObject) -> str:
    """Hash of a certificate, without the hash it has."""
    content = {name: value for name, value in certificate.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _keyed(word: str) -> str:
    """Keyed hash of a word: whoever has the word and the portal's secret key can compare."""
    return salted_hmac("tessera.erasure", word, algorithm="sha256").hexdigest()
