"""``python -m tests.chaos.control prepare|facts|retry``: prints JSON, from inside the portal."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from datetime import timedelta

import django

django.setup()

from portal.annotations.models import Roi  # noqa: E402
from portal.archive.models import Asset, CaseShare, Slide, Video  # noqa: E402
from portal.archive.services.cases import case_create  # noqa: E402
from portal.archive.storage import files as storage  # noqa: E402
from portal.audit.models import AuditEntry  # noqa: E402
from portal.core.models import Event  # noqa: E402
from portal.embeddings.models import Embedding  # noqa: E402
from portal.jobs.models import Job  # noqa: E402
from portal.jobs.services import job_retry  # noqa: E402
from portal.labs.models import Lab, Membership, Role, TokenScope, User  # noqa: E402
from portal.labs.services.tokens import token_create  # noqa: E402
from portal.mosaics.models import Mosaic  # noqa: E402
from tests.chaos.users import GUESTS  # noqa: E402

MANAGER, GUEST = "chaos@example.org", "guest@example.org"
_OF_ITEMS = ("item.received", "trash.put", "trash.restored")
_OF_SHARES = ("share.offered", "share.accepted", "share.ended")
PASSING = ("worker-lost", "attempts-spent", "storage-full")  # what a kill or a full disk may do


def prepare() -> object:
    """Two labs with a manager and a token each, and a case of the first."""
    lab, user, token = _lab(GUESTS.replace("guests", "hosts"), MANAGER)
    _, _, guest = _lab(GUESTS, GUEST)
    case = case_create(lab=lab, user=user, accession="C-1", patient_key="p1", organ="colon")
    return {"token": token, "guest": guest, "case": str(case.pk)}


def _lab(name: str, email: str) -> tuple[Lab, User, str]:
    lab = Lab.objects.create(name=name, slug=name.lower().replace(" ", "-"))
    user = User.objects.create_user(email, "correct horse battery staple")
    Membership.objects.create(user=user, lab=lab, role=Role.MANAGER)
    _, secret = token_create(
        user, name="chaos", scope=TokenScope.WRITE, expires_in=timedelta(days=30)
    )
    return lab, user, secret


def retry() -> object:
    """Try again what failed by a kill or a full disk, as a person would: how many."""
    user = User.objects.get(email=MANAGER)
    lost = Job.objects.filter(state="failed", error_code__in=PASSING)
    tried = {(job.kind, str(job.target_id)) for job in Job.objects.filter(state="succeeded")}
    count = 0
    for job in lost:
        key = (job.kind, str(job.target_id))
        if key not in tried:
            tried.add(key)
            job_retry(job=job, user=user)
            count += 1
    return count


def facts() -> object:
    """Read the stored facts."""
    ended = Counter(
        Event.objects.filter(name="job.ended").values_list("payload__job_id", flat=True)
    )
    jobs = [
        {
            **{name: getattr(job, name) for name in ("kind", "state", "error_code", "attempts")},
            "id": str(job.pk),
            "message": job.error_message,
            "ended": ended[str(job.pk)],
        }
        for job in Job.objects.all()
    ]
    audit_counts = _audit_counts()
    items = [
        *Slide.all_objects.select_related("asset"),
        *Video.all_objects.select_related("asset"),
    ]
    return {
        "jobs": jobs,
        "entries": AuditEntry.objects.count(),
        "items": [
            {
                "id": str(item.pk),
                "sha256": item.asset.sha256,
                "state": item.state,
                "error": f"{item.error_code} {item.error_message}",
                "bytes": _sha256_on_disk(item.asset),
                "canvas": item.canvas is not None,
                "in_trash": item.trash_entry_id is not None,
                "noted": {name: audit_counts[name, str(item.pk), None] for name in _OF_ITEMS},
            }
            for item in items
        ],
        "rois": [
            _roi(roi, audit_counts)
            for roi in Roi.all_objects.select_related("canvas").prefetch_related("revisions")
        ],
        "shares": [
            {
                "id": str(share.pk),
                "state": share.state,
                "noted": {name: audit_counts[name, str(share.pk), None] for name in _OF_SHARES},
            }
            for share in CaseShare.all_objects.all()
        ],
        "mosaics": [
            {
                "id": str(mosaic.pk),
                "state": mosaic.state,
                "error": mosaic.error_message,
                "components": mosaic.components.count(),
                "indexes": sorted(mosaic.components.values_list("index", flat=True)),
            }
            for mosaic in Mosaic.objects.all()
        ],
    }


def _audit_counts() -> Counter[tuple[str, str, int | None]]:
    """Number of audit entries about an action on an object (and version of an ROI)."""
    acts = ("roi.saved", "roi.deleted", *_OF_ITEMS, *_OF_SHARES)
    rows = AuditEntry.objects.filter(action__in=acts)
    return Counter(
        (action, str(pk), details.get("version"))
        for action, pk, details in rows.values_list("action", "object_id", "details")
    )


def _roi(roi: Roi, audit_counts: Counter[tuple[str, str, int | None]]) -> dict[str, object]:
    current = Embedding.all_objects.filter(roi=roi, superseded_at__isnull=True)
    revisions = roi.revisions.order_by("version")
    return {
        "id": str(roi.pk),
        "version": roi.version,
        "name": roi.name,
        "names": {str(row.version): row.name for row in revisions},
        "versions": [row.version for row in revisions],
        "actions": [str(row.action) for row in revisions],
        "deleted": roi.deleted_at is not None,
        "in_trash": roi.canvas.trash_entry_id is not None,
        "noted": [
            audit_counts["roi.saved", str(roi.pk), row.version]
            + audit_counts["roi.deleted", str(roi.pk), row.version]
            for row in revisions
        ],
        "current_embeddings": current.count(),
    }


def _sha256_on_disk(asset: Asset) -> str:
    path = storage.asset_path(asset.lab_id, asset.sha256)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"


if __name__ == "__main__":
    json.dump({"prepare": prepare, "facts": facts, "retry": retry}[sys.argv[1]](), sys.stdout)
