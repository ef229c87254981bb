"""Manifest of the current version of an index, replaced by a rename, and the lock of writers."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ml.errors import IndexBusyError, IndexFormatError
from ml.files import write_json

_FORMAT = 1  # of the folder; others are rejected
_NAME = "manifest.json"
_LOCK = "writer.lock"

Stamp = tuple[int, int, int]
"""Identity of a file: inode, modification time in ns, size."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of an index folder.

    Attributes:
        version: Incremented by every write.
        dim: Length of a vector.
        tag: Identity of the encoder.
        count: Live vectors.
        base: Folder of the base segment, "" for none.
        delta: File of the log.
        n_delta_records: Number of its records that are part of this version.
    """

    version: int
    dim: int
    tag: str
    count: int
    base: str
    delta: str
    n_delta_records: int
    format: int = _FORMAT


def manifest_path(folder: Path) -> Path:
    """Path of the manifest. Keep it for the check before each search: joining paths is slow."""
    return folder / _NAME


def stamp_of(file: Path) -> Stamp | None:
    """Stamp that changes when a file is replaced; None if there is no file. One stat call."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def read_manifest(folder: Path) -> Manifest | None:
    """Manifest of the current version; None if nothing was written yet.

    Raises:
        IndexFormatError: The file is not a manifest, or of another format.
    """
    try:
        text = (folder / _NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        values = json.loads(text)
        if values["format"] != _FORMAT:  # another release may have other fields
            raise IndexFormatError(
                f"{_NAME}: expected format {_FORMAT}, got {values['format']}; it was written by"
                " another release"
            )
        return Manifest(**values)
    except (ValueError, TypeError, KeyError) as error:
        raise IndexFormatError(f"{_NAME} of the index is damaged") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make ``manifest`` the current version: write a new file, flush it, rename it."""
    write_json(folder / _NAME, dataclasses.asdict(manifest), durable=True)


@contextmanager
def writer_lock(folder: Path, *, timeout_s: float) -> Iterator[None]:
    """Lock the folder for one writer; the kernel releases the lock when the process dies.

    Raises:
        IndexBusyError: Another writer has the lock for ``timeout_s``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("a") as stream:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise IndexBusyError(waited_s=timeout_s) from error
                time.sleep(0.02)
        yield
