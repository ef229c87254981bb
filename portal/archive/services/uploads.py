"""Files of a form, received at once. Those that come in pieces: ``transfers``."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from django.core.files.base import File

from ml.errors import BadInputError
from ml.imaging.formats.sniff import FileKind
from portal.archive import inspection
from portal.archive.models import Asset, Case, Upload, UploadState
from portal.archive.receiving import ReceivedFile
from portal.archive.rules import require_edit
from portal.archive.selectors.intake import asset_received
from portal.archive.services.assets import asset_placing
from portal.archive.services.identity import identity_mark
from portal.archive.services.quotas import require_quota
from portal.archive.storage import files as storage
from portal.core.disk import require_room
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.text import name_clean
from portal.labs.models import User

MEDIA_TYPES: dict[FileKind, str] = {
    "slide": "application/vnd.tessera.slide",
    "still": "image/*",
    "video": "video/*",
}
MAX_NAME_LENGTH = 200  # as the columns that keep it


def upload_admit(*, case: Case, user: User, size_bytes: int) -> None:
    """Refuse a transfer before its first byte, by what is known about it.

    Raises:
        ForbiddenError: the role does not allow it.
        TooLargeInputError: beyond ``TESSERA_UPLOAD_MAX_BYTES``.
        StorageFullError: no room for it on the disk, or within the lab's quota.
    """
    require_edit(user, case.lab_id)
    storage.require_size(size_bytes)
    require_quota(case.lab_id, size_bytes)
    require_room(size_bytes)


def upload_receive(
    *,
    case: Case,
    file: BinaryIO | File[Any],
    filename: str,
    user: User,
    kinds: tuple[FileKind, ...] = ("slide", "still", "video"),
) -> Upload:
    """Receive a whole file and keep it as an asset. Nothing is stored when it is refused.

    The same bytes in the same case give the existing upload: sending twice doubles nothing.

    Args:
        file: an open binary file, or what Django made of a form's file.
        kinds: the kinds of content accepted.
    Raises:
        InvalidInputError: empty, of a kind that Tessera does not open, or not of ``kinds``.
        TooLargeInputError: beyond ``TESSERA_UPLOAD_MAX_BYTES``.
    """
    with upload_receiving(
        case=case, file=file, filename=filename, user=user, kinds=kinds
    ) as received:
        return received.upload


@dataclass(frozen=True, slots=True)
class Received:
    """A complete upload and what its content is."""

    upload: Upload
    kind: FileKind


@contextmanager
def upload_receiving(
    *,
    case: Case,
    file: BinaryIO | File[Any],
    filename: str,
    user: User,
    kinds: tuple[FileKind, ...] = ("slide", "still", "video"),
) -> Iterator[Received]:
    """``upload_receive`` as a context manager: writes in the block are committed with the upload.

    So a slide and its bytes are stored together or not at all, even if the same bytes are deleted
    concurrently.
    """
    require_edit(user, case.lab_id)
    with _receive_file(file) as incoming:
        incoming.seal()
        kind = content_kind(incoming.path, filename=filename, kinds=kinds)

        def store(asset: Asset | None) -> Received:
            upload = upload_keep(
                case=case,
                received=None if asset else incoming.path,
                stored_asset=asset,
                sha256=incoming.sha256,
                size_bytes=incoming.size_bytes,
                kind=kind,
                filename=filename,
                user=user,
            )
            return Received(upload, kind)

        while (asset := asset_received(case.lab_id, incoming.sha256)) is not None:
            with asset_placing(case.lab_id, asset.sha256, received=None):
                if Asset.objects.filter(pk=asset.pk).exists():
                    yield store(asset)
                    return
            # deleted by another process: store the received bytes
        with asset_placing(case.lab_id, incoming.sha256, received=incoming.path):
            yield store(None)


def content_kind(
    path: Path,
    *,
    filename: str,
    kinds: tuple[FileKind, ...] = ("slide", "still", "video"),
) -> FileKind:
    """Kind of a file by its bytes; ``InvalidInputError`` names the kind that was found instead.

    The name matters in one case only: the picture of an MRXS slide is not the slide.
    """
    name = filename_clean(filename)
    try:
        kind = inspection.file_kind(path)
    except BadInputError as error:
        raise InvalidInputError(
            f"{name} was not stored: {error}.", code=error.code, details={"filename": name}
        ) from error
    if kind == "still" and name.lower().endswith(".mrxs"):
        raise InvalidInputError(
            f"{name} was not stored: it is only the preview of an MRXS slide; "
            f"send it together with its folder {name[: -len('.mrxs')]}.",
            code="incomplete-set",
            details={"filename": name},
        )
    if kind not in kinds:
        kind_name = {"slide": "a slide", "still": "an image", "video": "a video"}[kind]
        expected = "a video" if kinds == ("video",) else "a slide or an image"
        raise InvalidInputError(
            f"{name} was not stored: the file is {kind_name}; expected {expected}.",
            code="unexpected-kind",
            details={"filename": name, "kind": kind},
        )
    return kind


def content_kind_of(asset: Asset) -> FileKind:
    """Kind of a stored file, as detected on arrival."""
    return next(kind for kind, media in MEDIA_TYPES.items() if media == asset.media_type)


def filename_clean(filename: str) -> str:
    """The last part of a path, printable, not too long; never empty."""
    last = filename.replace("\\", "/").rsplit("/", 1)[-1]
    return name_clean(last)[:MAX_NAME_LENGTH].rstrip() or "unnamed"


def _receive_file(file: BinaryIO | File[Any]) -> storage.Incoming:
    """The bytes on the storage volume, hashed; a form's file is there already."""
    if isinstance(file, ReceivedFile):
        return file.incoming
    incoming = storage.Incoming()
    try:
        incoming.write_all(_chunks(file))
    except BaseException:
        incoming.discard()
        raise
    return incoming


def _chunks(file: BinaryIO | File[Any]) -> Iterator[bytes]:
    while chunk := file.read(storage.CHUNK_BYTES):
        yield chunk


def upload_keep(
    *,
    case: Case,
    received: Path | None,
    stored_asset: Asset | None,
    sha256: str,
    size_bytes: int,
    kind: FileKind,
    filename: str,
    user: User | None,
    upload: Upload | None = None,
) -> Upload:
    """Bytes first, then rows: a crash in between leaves a stray file, never a row without bytes.

    Call inside ``asset_placing``.

    Args:
        received: None if the store has the bytes already.
        stored_asset: The lab's asset of these bytes, see ``asset_received``.
        upload: the transfer that brought them; None if they came at once.
    Returns:
        The upload of these bytes in this case: ``upload`` where it is given; otherwise an older
        one, or a new one.
    Raises:
        ConflictError: what the lab kept of them was deleted in the meantime.
    """
    if stored_asset is not None and not Asset.objects.filter(pk=stored_asset.pk).exists():
        raise ConflictError(
            f"{filename} has been deleted in the meantime; send it again.", code="upload-gone"
        )
    if (
        stored_asset is None
        and not Asset.objects.filter(lab_id=case.lab_id, sha256=sha256).exists()
    ):
        announced = size_bytes if upload is None else 0  # one in pieces is counted already
        require_quota(case.lab_id, announced)
    if received is not None:
        storage.the_store().put(received, storage.asset_name(case.lab_id, sha256))
    identity_mark()
    asset = stored_asset
    if asset is None:
        asset, _ = Asset.objects.get_or_create(
            lab_id=case.lab_id,
            sha256=sha256,
            defaults={"size_bytes": size_bytes, "media_type": MEDIA_TYPES[kind]},
        )
    uploads = Upload.objects.filter(case=case, asset=asset)
    before = uploads.exclude(state=UploadState.WITHHELD).first()
    if before is not None and upload is None:
        return before
    row = upload or Upload(pk=uuid.uuid4(), lab_id=case.lab_id, case=case, created_by=user)
    row.filename, row.asset, row.sha256 = filename_clean(filename), asset, sha256
    row.size_bytes = row.received_bytes = size_bytes
    row.state = UploadState.STORED
    row.save()
    return row
