"""Stored crates, and the results of their imports."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from portal.archive.models import Case, Upload
from portal.archive.selectors.uploads import stored_crates
from portal.jobs.models import Job, JobState
from portal.labs.models import Lab, User

IMPORT_KIND = "case_import"
SHOWN = 20  # imports on a page: more than anybody has under way


@dataclass(frozen=True, slots=True)
class ImportSeen:
    """A job that imports a case, its crate while that is stored, and the imported case."""

    job: Job
    crate: Upload | None
    case: Case | None


@dataclass(frozen=True, slots=True)
class Imports:
    """Imports of a lab that a manager sees.

    Attributes:
        half: Crates with missing bytes.
        waiting: Complete ones without a job.
        jobs: Newest first, one a crate.
    """

    half: Sequence[Upload]
    waiting: Sequence[Upload]
    jobs: Sequence[ImportSeen]

    @property
    def is_running(self) -> bool:
        """Return whether a job has not ended."""
        return any(not job.job.has_ended for job in self.jobs)


def import_job(upload: Upload) -> Job | None:
    """The newest job that imports a crate."""
    jobs = Job.objects.filter(kind=IMPORT_KIND, target_id=upload.pk)
    return jobs.order_by("-created_at", "-id").first()


def imports_of(*, lab: Lab, user: User) -> Imports:
    """Imports of the lab, for its managers."""
    jobs = Job.objects.visible_to(user).filter(kind=IMPORT_KIND, lab=lab)
    newest: dict[uuid.UUID | None, Job] = {}
    for job in jobs.order_by("-created_at", "-id")[: 2 * SHOWN]:
        newest.setdefault(job.target_id, job)
    uploads: dict[uuid.UUID | None, Upload] = {
        crate.pk: crate for crate in stored_crates(lab=lab, user=user)
    }
    shown_jobs = list(newest.values())[:SHOWN]
    ids = [
        (job.result or {}).get("case_id") for job in shown_jobs if job.state == JobState.SUCCEEDED
    ]
    cases = Case.objects.visible_to(user).in_bulk([uuid.UUID(pk) for pk in ids if pk])
    return Imports(
        half=[upload for upload in uploads.values() if upload.received_bytes < upload.size_bytes],
        waiting=[
            upload
            for upload in uploads.values()
            if upload.received_bytes == upload.size_bytes and upload.pk not in newest
        ],
        jobs=[ImportSeen(job, uploads.get(job.target_id), _case(job, cases)) for job in shown_jobs],
    )


def _case(job: Job, cases: dict[uuid.UUID, Case]) -> Case | None:
    pk = (job.result or {}).get("case_id")
    return cases.get(uuid.UUID(pk)) if pk else None
