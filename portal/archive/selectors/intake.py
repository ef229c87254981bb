"""Reads of how files are taken in."""

from __future__ import annotations

import uuid
from pathlib import Path
from tempfile import TemporaryDirectory

from django.db.models import QuerySet

from ml.errors import MlError, UnknownNameError
from portal.archive import inspection
from portal.archive.inspection import Preview
from portal.archive.models import Asset, IntakeRules, Redaction, Slide, Upload, UploadState, Video
from portal.archive.rules import require_intake
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError, NotFoundError
from portal.labs.models import Membership, Role, User


def intake_rules_of(lab_id: uuid.UUID) -> IntakeRules:
    """Intake rules of the lab; unsaved defaults if none are stored."""
    rules: IntakeRules | None = IntakeRules.objects.filter(lab_id=lab_id).first()
    return rules or IntakeRules(lab_id=lab_id)


def known_words_of(item: Slide | Video) -> list[str]:
    """Texts that identify an item's patient where a picture shows one of their words."""
    uploads = Upload.objects.filter(case_id=item.case_id, asset_id=item.asset_id)
    case, names = item.case, uploads.values_list("filename", flat=True)
    return [word for word in (case.accession, case.patient_key, item.name, *names) if word]


def quarantine_list(*, user: User) -> QuerySet[Upload]:
    """Files in quarantine of the labs that the person manages, newest first."""
    uploads = _uploads_managed_by(user, UploadState.QUARANTINED)
    uploads = uploads.select_related("case", "lab", "created_by", "asset", "evidence", "redaction")
    return uploads.defer("evidence__picture")


def redaction_of(item: Slide | Video) -> Redaction | None:
    """Boxes that are to be made black in an item's file; None if there are none to make."""
    redaction: Redaction | None = Redaction.objects.filter(
        upload__case_id=item.case_id, upload__asset_id=item.asset_id, applied_at=None
    ).first()
    return redaction


def originals_list(*, user: User) -> QuerySet[Upload]:
    """Originals of redacted files of the labs that the person manages, newest first."""
    return _uploads_managed_by(user, UploadState.WITHHELD).select_related(
        "case", "lab", "created_by", "asset", "redacted"
    )


def original_get(*, user: User, upload_id: uuid.UUID) -> Upload:
    """Original of a redacted file; ``NotFoundError``, ``ForbiddenError`` for non-managers."""
    return _one(originals_list(user=user), UploadState.WITHHELD, user, upload_id)


def original_path(upload: Upload) -> Path:
    """Path of the original of a redacted file; ``NotFoundError`` if the storage has lost it."""
    try:
        return storage.asset_path(upload.lab_id, upload.sha256)
    except FileNotFoundError as error:
        raise NotFoundError("The storage has lost this original.") from error


def refused_list(*, user: User) -> QuerySet[Upload]:
    """Files refused on arrival in labs that the user manages, newest first; they are not stored."""
    return _uploads_managed_by(user, UploadState.REFUSED).select_related("case", "created_by")


def _uploads_managed_by(user: User, state: UploadState) -> QuerySet[Upload]:
    managed = Membership.objects.of(user).filter(role=Role.MANAGER).values("lab_id")
    uploads: QuerySet[Upload] = Upload.objects.owned_by(user).filter(
        state=state, lab_id__in=managed, case__isnull=False, case__trash_entry=None, is_part=False
    )
    return uploads.order_by("-updated_at", "id")


def quarantine_get(*, user: User, upload_id: uuid.UUID) -> Upload:
    """Quarantined file; ``NotFoundError`` if not visible, ``ForbiddenError`` for non-managers."""
    return _one(quarantine_list(user=user), UploadState.QUARANTINED, user, upload_id)


def preview_of(upload: Upload, *, image: str = "", at: float = 0.0) -> Preview:
    """The picture of a file in quarantine on which boxes are drawn, made in a confined child.

    Args:
        image: "label" or "macro" of a slide; "" for the picture itself.
        at: Place of the frame in a video, as a share of its length.
    Raises:
        NotFoundError: It has no such picture.
        ConflictError: It cannot be opened.
    """
    if upload.asset is None:
        raise NotFoundError("No such file in quarantine.")
    with TemporaryDirectory() as folder:
        source = storage.asset_path(upload.lab_id, upload.asset.sha256)
        try:
            return inspection.preview_make(source, Path(folder), image=image, at=at)
        except UnknownNameError as error:
            raise NotFoundError(f"{upload.name} has no {image} image.") from error
        except MlError as error:
            raise ConflictError(
                f"No picture can be shown: {error}.", code="not-openable"
            ) from error


def _one(rows: QuerySet[Upload], state: UploadState, user: User, upload_id: uuid.UUID) -> Upload:
    upload: Upload | None = rows.filter(pk=upload_id).first()
    if upload is not None:
        return upload
    hidden = Upload.objects.owned_by(user).filter(pk=upload_id, state=state).first()
    if hidden is not None:
        require_intake(user, hidden.lab_id)
    raise NotFoundError("No such file in quarantine.")


def asset_received(lab_id: uuid.UUID, sha256: str) -> Asset | None:
    """The lab's asset of an uploaded file with this hash; the file may have contained names.

    None as well if the storage has lost its original: then it is received again.
    """
    if not sha256:
        return None
    withheld = UploadState.WITHHELD  # the redacted file takes its place
    assets = Asset.objects.filter(lab_id=lab_id, sha256=sha256)
    asset: Asset | None = assets.exclude(uploads__state=withheld).first()
    if asset is None:
        uploads = Upload.objects.filter(lab_id=lab_id, sha256=sha256).exclude(asset=None)
        uploads = uploads.exclude(state=withheld)
        before = uploads.select_related("asset").first()
        asset = before.asset if before else None
    if asset is None:
        return None
    stored = storage.the_store().stat(storage.asset_name(lab_id, asset.sha256))
    return asset if stored is not None and stored.size_bytes == asset.size_bytes else None
