"""Reads of transfers, limited to those visible to the user."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.archive.models import Case, Slide, Upload, UploadState, Video
from portal.core.errors import NotFoundError
from portal.jobs.models import Job
from portal.jobs.selectors.jobs import job_latest_for
from portal.labs.models import Lab, Membership, Role, User

MAX_QUARANTINED_SHOWN = 20  # shown on the page of a case; managers have a page of all


@dataclass(frozen=True, slots=True)
class UploadSeen:
    """A transfer, the newest job that checks it, and the item created from it, if any."""

    upload: Upload
    job: Job | None
    item: Slide | Video | None


def upload_list(*, user: User) -> QuerySet[Upload]:
    """The transfers to the person's labs, newest first, without parts of files."""
    uploads = _visible_uploads(user).filter(is_part=False)
    return uploads.select_related("case", "lab").order_by("-created_at", "id")


def uploads_named(user: User) -> QuerySet[Upload]:
    """The transfers that a job may name to a person: of what is in the trash, none."""
    same = {"case": OuterRef("case"), "asset": OuterRef("asset")}
    is_present = Exists(Slide.objects.filter(**same)) | Exists(Video.objects.filter(**same))
    is_named = Q(asset=None) | ~Q(state=UploadState.STORED) | is_present
    uploads: QuerySet[Upload] = _visible_uploads(user).filter(is_named)
    return uploads


def upload_get(*, user: User, upload_id: uuid.UUID) -> Upload:
    """A transfer or a part of one, or ``NotFoundError``."""
    uploads = _visible_uploads(user).select_related("case", "lab")
    upload = uploads.filter(pk=upload_id).first()
    if upload is None:
        raise NotFoundError("No such upload.")
    return upload


def _visible_uploads(user: User) -> QuerySet[Upload]:
    """All; of crates and files in quarantine, one's own and those of labs that one manages.

    Originals of redacted files only for managers.
    """
    managed = Membership.objects.of(user).filter(role=Role.MANAGER).values("lab_id")
    restricted = Q(state=UploadState.QUARANTINED) | Q(case=None)
    withheld = Q(state=UploadState.WITHHELD) & ~Q(lab_id__in=managed)
    uploads: QuerySet[Upload] = Upload.objects.owned_by(user).exclude(
        restricted & ~Q(created_by=user) & ~Q(lab_id__in=managed) | withheld
    )
    return uploads


def stored_crates(*, lab: Lab, user: User) -> list[Upload]:
    """Uploaded cases (RO-Crates) of a lab that are not imported yet, newest first."""
    crates = upload_list(user=user).filter(lab=lab, case=None)
    return list(crates.exclude(state=UploadState.CHECKING).exclude(state=UploadState.STORED))


def uploads_interrupted(*, case: Case, user: User) -> list[Upload]:
    """Unfinished uploads of this person to a case."""
    waiting = upload_list(user=user).filter(case=case, created_by=user)
    return list(waiting.filter(state=UploadState.RECEIVING))


def uploads_held(*, case: Case, user: User) -> list[Upload]:
    """Files sent to a case that are in quarantine: one's own, and for managers everybody's."""
    uploads = upload_list(user=user).filter(case=case, state=UploadState.QUARANTINED)
    return list(uploads[:MAX_QUARANTINED_SHOWN])


def uploads_seen(uploads: Sequence[Upload]) -> list[UploadSeen]:
    """State and result of uploads; the number of queries does not depend on their number."""
    jobs = job_latest_for(target_type="upload", target_ids=[upload.pk for upload in uploads])
    assets = {upload.asset_id for upload in uploads if upload.asset_id}
    items: dict[tuple[uuid.UUID | None, uuid.UUID], Slide | Video] = {}
    for model in (Slide, Video) if assets else ():
        for item in model.objects.filter(asset__in=assets):
            items[(item.case_id, item.asset_id)] = item
    return [
        UploadSeen(
            upload,
            jobs.get(upload.pk),
            items.get((upload.case_id, upload.asset_id)) if upload.asset_id else None,
        )
        for upload in uploads
    ]
