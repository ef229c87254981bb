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
from portal.archive import storage  # noqa: E402
from portal.archive.models import Asset, Slide, Video  # noqa: E402
from portal.archive.services import case_create  # noqa: E402
from portal.core.models import Event  # noqa: E402
from portal.jobs.models import Job  # noqa: E402
from portal.jobs.services import job_retry  # noqa: E402
from portal.labs.models import Lab, Membership, Role, TokenScope, User  # noqa: E402
from portal.labs.services import token_create  # noqa: E402
from portal.mosaics.models import Mosaic  # noqa: E402
from portal.retrieval.models import Embedding  # noqa: E402

MANAGER = "chaos@example.org"
PASSING = ("worker-lost", "attempts-spent", "storage-full")  # what a kill or a full disk may do


def prepare() -> object:
    """A lab, a manager, a token, a case."""
    lab = Lab.objects.create(name="Chaos", slug="chaos")
    user = User.objects.create_user(MANAGER, "correct horse battery staple")
    Membership.objects.create(user=user, lab=lab, role=Role.MANAGER)
    _, secret = token_create(
        user, name="chaos", scope=TokenScope.WRITE, expires_in=timedelta(days=30)
    )
    case = case_create(lab=lab, user=user, accession="C-1", patient_key="p1", organ="colon")
    return {"token": secret, "case": str(case.pk)}


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
    """What the books say."""
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
    items = [*Slide.objects.select_related("asset"), *Video.objects.select_related("asset")]
    return {
        "jobs": jobs,
        "items": [
            {
                "id": str(item.pk),
                "sha256": item.asset.sha256,
                "state": item.state,
                "error": f"{item.error_code} {item.error_message}",
                "bytes": _sha256_on_disk(item.asset),
                "canvas": item.canvas is not None,
            }
            for item in items
        ],
        "rois": [_roi(roi) for roi in Roi.objects.prefetch_related("revisions")],
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


def _roi(roi: Roi) -> dict[str, object]:
    current = Embedding.objects.filter(roi=roi, superseded_at__isnull=True)
    revisions = roi.revisions.order_by("version")
    return {
        "id": str(roi.pk),
        "version": roi.version,
        "name": roi.name,
        "names": {str(row.version): row.name for row in revisions},
        "versions": [row.version for row in revisions],
        "current_embeddings": current.count(),
    }


def _sha256_on_disk(asset: Asset) -> str:
    path = storage.asset_path(asset.lab_id, asset.sha256)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"


if __name__ == "__main__":
    json.dump({"prepare": prepare, "facts": facts, "retry": retry}[sys.argv[1]](), sys.stdout)
