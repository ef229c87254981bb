"""Originals in a folder of the storage volume: a rename takes them over, moves and restores."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG

from ml.files import sync_folder, write_bytes
from portal.archive.storage.store import Stored
from portal.core.disk import full_disk_refused


class FolderStore:
    """See ``Store``; received files must be on the same volume."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def send(self, received: Path, name: str) -> None:
        """Do nothing: ``put`` moves the file at once."""

    def put(self, received: Path, name: str) -> None:
        """Move the file into the store by one rename."""
        target = self._root / name
        with full_disk_refused():
            target.parent.mkdir(parents=True, exist_ok=True)
            received.chmod(0o440)
            received.replace(target)
            sync_folder(target.parent)

    def write(self, name: str, data: bytes) -> None:
        """Write a file by one rename, durably."""
        (self._root / name).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(self._root / name, data, durable=True)

    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    def local(self, name: str) -> Path:
        """Path of the file; opening it shows whether it exists."""
        return self._root / name

    def stat(self, name: str) -> Stored | None:
        """Size and time of a file; None for folders and missing files."""
        path = self._root / name
        try:
            stat = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not S_ISREG(stat.st_mode):
            return None
        return Stored(path.relative_to(self._root).as_posix(), stat.st_size, stat.st_ctime)

    def files(self, folder: str) -> Iterator[Stored]:
        """Files of a folder, without those deleted during the walk."""
        walked = os.walk(self._root / folder)  # passes over a folder that is gone
        for path in sorted(Path(at, name) for at, _, names in walked for name in names):
            stored = self.stat(path.relative_to(self._root).as_posix())
            if stored is not None:
                yield stored

    def folders(self, folder: str) -> list[str]:
        """An empty list if there is no such folder."""
        parent = self._root / folder
        return (
            sorted(path.name for path in parent.iterdir() if path.is_dir())
            if parent.is_dir()
            else []
        )

    def move(self, name: str, target: str) -> None:
        """Move a file by renaming it."""
        source, goal = self._root / name, self._root / target
        goal.parent.mkdir(parents=True, exist_ok=True)
        source.replace(goal)
        sync_folder(goal.parent)
        sync_folder(source.parent)

    def delete(self, name: str) -> bool:
        """Delete the file; this store has no copies of it."""
        path = self._root / name
        was_there = path.is_file()
        path.unlink(missing_ok=True)
        return was_there

    def delete_folder(self, folder: str) -> None:
        """Delete the folder; files that cannot be deleted remain."""
        shutil.rmtree(self._root / folder, ignore_errors=True)

    def is_intact(self, name: str) -> bool:
        """Return whether the hash of the file is its name; False if it is missing."""
        try:
            with (self._root / name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == name.rsplit("/", 1)[-1]
        except FileNotFoundError:
            return False

    def tidy(self) -> int:
        """Return 0: this store has no copies to delete."""
        return 0

    def check(self) -> None:
        """Check that the root can be written."""
        self._root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._root) as probe:
            probe.write(b"ok")
