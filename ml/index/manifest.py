"""Which files are the index's current version, swapped by one rename; and who may write."""

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

_FORMAT = 1  # of the folder; another is refused
_NAME = "manifest.json"
_LOCK = "writer.lock"

Stamp = tuple[int, int, int]
"""Of a file: inode, time of the last change in ns, size."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of an index folder.

    Attributes:
        version: grows by one with every write.
        dim: length of a vector. tag: whose vectors these are.
        count: live vectors.
        base: folder of the base segment, "" where there is none.
        delta: file of the log. n_delta_records: how many of its records count.
    """

    version: int
    dim: int
    tag: str
    count: int
    base: str
    delta: str
    n_delta_records: int
    format: int = _FORMAT


def manifest_file(folder: Path) -> Path:
    """The path of the manifest; keep it for checks before each search: joining paths costs more."""
    return folder / _NAME


def stamp_of(file: Path) -> Stamp | None:
    """What changes whenever a file is replaced; None if there is none. One stat call."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def read_manifest(folder: Path) -> Manifest | None:
    """The current version's manifest, or None if nothing was ever written.

    Raises:
        IndexFormatError: the file is not a manifest, or of another format.
    """
    try:
        text = (folder / _NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        told = json.loads(text)
        if told["format"] != _FORMAT:  # another release may have other fields
            raise IndexFormatError(
                f"{_NAME}: expected format {_FORMAT}, got {told['format']}; it was written by"
                " another release"
            )
        return Manifest(**told)
    except (ValueError, TypeError, KeyError) as error:
        raise IndexFormatError(f"{_NAME} of the index is damaged") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make ``manifest`` the current version: written beside, flushed, renamed over the old one."""
    write_json(folder / _NAME, dataclasses.asdict(manifest), durable=True)


@contextmanager
def writer_lock(folder: Path, *, timeout_s: float) -> Iterator[None]:
    """Be the folder's only writer; the kernel releases the lock when the process dies.

    Raises:
        IndexBusyError: another writer held it for ``timeout_s``.
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
