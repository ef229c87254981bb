"""Answers ``seat`` (a token and a case) and ``stored`` (what became of each transfer)."""

from __future__ import annotations

from datetime import timedelta

import django

django.setup()

from portal.archive.models import Asset, Slide, Upload  # noqa: E402
from portal.archive.services.cases import case_create  # noqa: E402
from portal.archive.storage import files as storage  # noqa: E402
from portal.jobs.models import Job  # noqa: E402
from portal.labs.models import Lab, Membership, Role, TokenScope, User  # noqa: E402
from portal.labs.services.tokens import token_create  # noqa: E402
from tests.killing.command_line import dispatch  # noqa: E402


def seat(name: str, role: str = Role.ANNOTATOR) -> object:
    """A lab of that name, an annotator of it (or another), her token and a case."""
    lab = Lab.objects.create(slug=name, name=name)
    user = User.objects.create_user(f"{name}@kill.example", "correct horse battery")
    Membership.objects.create(user=user, lab=lab, role=role)
    _, secret = token_create(
        user, name="kill", scope=TokenScope.WRITE, expires_in=timedelta(days=1)
    )
    case = case_create(lab=lab, user=user, accession="K-1")
    return {"token": secret, "case": str(case.pk)}


def stored(case_id: str) -> object:
    """By file name: state, SHA-256 of the row, of the bytes on the disk, and how many slides."""
    result, jobs = {}, Job.objects.order_by("created_at")
    for upload in Upload.objects.filter(case=case_id).select_related("asset"):
        asset: Asset | None = upload.asset
        result[upload.filename] = {
            "state": upload.state,
            "error": upload.error_message,
            "jobs": list(jobs.filter(target_id=upload.pk).values_list("kind", "state", "attempts")),
            "sha256": asset.sha256 if asset else "",
            "on_disk": storage.file_sha256(storage.asset_path(upload.lab_id, asset.sha256))
            if asset
            else "",
            "slides": Slide.objects.filter(case=case_id, asset=asset).count() if asset else 0,
        }
    return result


if __name__ == "__main__":
    dispatch({"seat": seat, "stored": stored})
