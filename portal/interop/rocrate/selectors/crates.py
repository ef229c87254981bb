"""Stored crates, and the patients whose data they may hold."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from ml.errors import BadInputError
from ml.imaging.sandbox.parent import run_limited
from ml.imaging.sandbox.policy import Limits
from ml.types import JsonObject, no_progress
from portal.archive.models import Upload, UploadState
from portal.archive.storage import files as storage

_LIMITS = Limits(cpu_s=600, wall_s=1200.0, file_bytes=2**20)


def crates_concerned(
    *, lab_id: uuid.UUID, case_ids: Collection[uuid.UUID], words: Collection[str]
) -> list[Upload]:
    """Crates of a lab that hold one of these cases, or may hold it.

    A crate that names another case of another patient is left out. An incomplete or damaged one
    cannot be assigned and is included.

    Args:
        words: Accession numbers and the patient's key.
    """
    crates = Upload.objects.filter(lab=lab_id, case=None).exclude(state=UploadState.STORED)
    ids = {str(pk) for pk in case_ids}
    return [crate for crate in crates if not _is_of_others(_subject(crate), ids, set(words))]


def _is_of_others(subject: JsonObject, ids: set[str], words: set[str]) -> bool:
    names = {subject.get("accession"), subject.get("patient_key")}
    return bool(subject.get("id")) and subject["id"] not in ids and names.isdisjoint(words)


def _subject(crate: Upload) -> JsonObject:
    """Read a crate's description in a confined child; empty where it cannot be read."""
    path = storage.incoming_path(str(crate.pk))
    if crate.received_bytes < crate.size_bytes or not path.is_file():
        return {}
    target = "portal.interop.rocrate.formats.opening:crate_subject"
    arguments = {"path": str(path), "name": crate.filename}
    try:
        return run_limited(target, arguments, reads=(path,), limits=_LIMITS, progress=no_progress)
    except (BadInputError, OSError):
        return {}
