"""Atomic writing of files: to a temporary name in the same folder, then one rename."""

from __future__ import annotations

import json
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

WEIGHTS_FOLDER = Path(__file__).resolve().parent / "weights"
"""Folder of the weights that ship with the package."""

NO_ARRAYS = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
"""Exceptions of reading named arrays from a file that is not NumPy's, damaged, or incomplete."""


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A new file in the folder of ``path`` to write to, which takes its place when the block ends.

    Where the block fails the new file is removed and ``path`` stays as it was. The new file has a
    name of its own, so that two who write the same file at once do not write into one another's;
    it keeps the ending of ``path``, for libraries that tell a format by it.

    Args:
        durable: on the disk, and so is the rename, before this returns.
    Raises:
        OSError: the folder is missing or cannot be written to.
    """
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(4)}{path.suffix}")
    mode = _create(temporary)
    try:
        yield temporary
        temporary.chmod(mode)  # some libraries write a file that only its owner may read
        if durable:
            _sync(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        sync_folder(path.parent)


def write_bytes(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write bytes, whole or not at all."""
    with replacing(path, durable=durable) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write UTF-8 text, whole or not at all."""
    write_bytes(path, text.encode(), durable=durable)


def write_json(path: Path, value: Any, *, durable: bool = False) -> None:
    """Write plain data as JSON, one value a line, whole or not at all.

    Raises:
        ValueError: a number in it is not finite, which JSON has no word for.
        TypeError: something in it is not of a JSON type.
    """
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n", durable=durable)


def write_npz(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write named arrays to an ``.npz`` file, whole or not at all."""
    arrays_by_name: dict[str, Any] = dict(arrays)  # savez has a bool among its own keywords
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays_by_name)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk: a rename is only durable once its folder is."""
    _sync(folder)


def sync_tree(path: Path) -> None:
    """Flush a file to disk, or a folder with all that is in it."""
    for entry in (path, *path.rglob("*")):
        _sync(entry)


def _create(path: Path) -> int:
    """Create the file with the permissions any new file gets, and return them."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        return os.fstat(handle).st_mode & 0o777
    finally:
        os.close(handle)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
