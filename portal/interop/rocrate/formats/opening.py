"""The first look at a crate, for a confined child: nothing here knows of the portal's data."""

from __future__ import annotations

from pathlib import Path

from ml.types import JsonObject, Progress
from portal.interop.rocrate.formats.reader import CrateError, CrateReader

_SUBJECT = ("id", "accession", "patient_key")


def crate_open(*, path: str, name: str, progress: Progress) -> JsonObject:
    """Read all of a crate once, as ``CrateReader.verify`` does.

    Returns:
        ``code`` and ``message`` of what is wrong with it; nothing where it is sound.
    """
    byte_count = 0

    def on_bytes(count: int) -> None:
        nonlocal byte_count
        byte_count += count
        progress(min(byte_count, crate.size_bytes), crate.size_bytes, "Checking the crate")

    crate = CrateReader(Path(path), name=name, on_bytes=on_bytes)
    try:
        with crate:
            crate.verify()
    except CrateError as error:
        return {"code": error.code, "message": error.message}
    return {}


def crate_subject(*, path: str, name: str, progress: Progress) -> JsonObject:
    """Read whose case a crate holds, and nothing else.

    Returns:
        ``id``, ``accession`` and ``patient_key`` as they are there; nothing where it is damaged.
    """
    progress(0, 0, "Looking at the crate")
    try:
        with CrateReader(Path(path), name=name) as crate:
            rows = list(crate.rows("records/case.jsonl"))
    except CrateError:
        return {}
    return {key: str(rows[0].get(key) or "") for key in _SUBJECT} if len(rows) == 1 else {}
