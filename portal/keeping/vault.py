"""The destination of backups: objects by content, and generations that name them.

::

    <vault>/objects/<sha[:2]>/<sha>        contents of files, shared by all generations
    <vault>/generations/<name>/manifest.json    what it is, and the hashes of what lies beside it
    <vault>/generations/<name>/manifest.sha256  of the manifest
    <vault>/generations/<name>/files.jsonl      one line a file: path, sha256, size, time
    <vault>/generations/<name>/database...      the dump of the database
    <vault>/erasures.json                  what was erased since: a restore erases it again

A generation is made beside its place and put there by one rename: what is there is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypedDict

from ml.files import sync_folder, write_json, write_text
from ml.types import JsonObject
from portal.archive import storage
from portal.core.errors import ConflictError, NotFoundError

FORMAT = 1  # of a backup; another one is refused
CHUNK_BYTES = 2**20  # copied and hashed at a time
_PARTIAL = ".partial-"


class BackupDamagedError(ConflictError):
    """What lies there is not what was written; the message names each file."""

    code = "backup-damaged"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the storage as a generation has it; ``path`` is relative to the storage's root."""

    path: str
    sha256: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class DumpFile:
    """A file of the database's dump."""

    name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class GenerationManifest:
    """What a generation is.

    Attributes:
        taken_at: when the database was read, ISO 8601.
        engine: ``sqlite`` or ``postgresql``; ``schema`` has what its dump needs to be read.
        rows: by table.
        missing: files that rows name and that were not there to be copied.
    """

    name: str
    taken_at: str
    engine: str
    schema: JsonObject
    dump: list[DumpFile]
    rows: dict[str, int]
    files_sha256: str
    files: int
    size_bytes: int
    missing: list[str] = field(default_factory=list)
    format: int = FORMAT


class ErasedCases(TypedDict):
    """An erasure as a vault keeps it: its id, its cases' ids, and when it was done (ISO 8601)."""

    erasure: str
    cases: list[str]
    at: str


class Vault:
    """A destination. Every write is beside its place first; a lock lets one backup in at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = folder / "objects"
        self.generations_folder = folder / "generations"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the vault for this process; ``ConflictError`` where another one has it."""
        self.generations_folder.mkdir(parents=True, exist_ok=True)
        self.objects.mkdir(exist_ok=True)
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConflictError(
                    f"Another backup to {self.folder} is running.", code="backup-under-way"
                ) from None
            for left in self.objects.glob(f"{_PARTIAL}*"):
                left.unlink()  # of a backup that was killed
            yield
        finally:
            os.close(handle)

    def names(self) -> list[str]:
        """The complete generations, oldest first."""
        if not self.generations_folder.is_dir():
            return []
        found = self.generations_folder.iterdir()
        return sorted(path.name for path in found if not path.name.startswith("."))

    def newest(self) -> str:
        """The newest generation; ``NotFoundError`` where there is none."""
        names = self.names()
        if not names:
            raise NotFoundError(f"There is no backup in {self.folder}.", code="no-backup")
        return names[-1]

    def generation(self, name: str) -> Path:
        """The folder of a generation."""
        return self.generations_folder / name

    def object_path(self, sha256: str) -> Path:
        """Where the content of that hash lies."""
        return self.objects / sha256[:2] / sha256

    def holds(self, sha256: str, size_bytes: int) -> bool:
        """Whether the content is there, by name and size."""
        path = self.object_path(sha256)
        return path.is_file() and path.stat().st_size == size_bytes

    def put(self, source: Path) -> tuple[str, int, bool]:
        """Copy a file's content: its hash, its size, and whether it was new.

        Raises:
            FileNotFoundError: the file has gone.
        """
        temporary = self.objects / f"{_PARTIAL}{os.getpid()}"
        sha256, size_bytes = hashlib.sha256(), 0
        try:
            with source.open("rb") as reader, temporary.open("wb", buffering=0) as writer:
                while chunk := reader.read(CHUNK_BYTES):
                    sha256.update(chunk)
                    storage.write_whole(writer, chunk)
                    size_bytes += len(chunk)
                os.fsync(writer.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)  # a full disk must not stay full of it
            raise
        name = sha256.hexdigest()
        if self.holds(name, size_bytes):
            temporary.unlink()
            return name, size_bytes, False
        target = self.object_path(name)
        target.parent.mkdir(exist_ok=True)
        temporary.chmod(0o440)
        temporary.replace(target)
        sync_folder(target.parent)
        return name, size_bytes, True

    @contextmanager
    def begun(self, name: str) -> Iterator[Path]:
        """A folder to make a generation in, removed unless ``publish`` moved it away."""
        for left in self.generations_folder.glob(f"{_PARTIAL}*"):
            shutil.rmtree(left)  # of a backup that was killed: the lock says that none is at work
        folder = self.generations_folder / f"{_PARTIAL}{name}"
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, made: Path, manifest: GenerationManifest) -> None:
        """Write the manifest and put the generation in its place by one rename."""
        text = json.dumps(asdict(manifest), indent=1) + "\n"
        write_text(made / "manifest.json", text, durable=True)
        write_text(made / "manifest.sha256", hashlib.sha256(text.encode()).hexdigest() + "\n")
        for path in made.iterdir():
            sync_folder(path)
        made.replace(self.generation(manifest.name))
        sync_folder(self.generations_folder)

    def manifest(self, name: str) -> GenerationManifest:
        """What a generation is.

        Raises:
            NotFoundError: there is none of that name.
            BackupDamagedError: its manifest is not what was written, or of another format.
        """
        folder = self.generation(name)
        if not folder.is_dir():
            known = ", ".join(self.names()) or "none"
            raise NotFoundError(f"There is no backup {name} in {self.folder}; available: {known}.")
        try:
            text = (folder / "manifest.json").read_bytes()
            wanted = (folder / "manifest.sha256").read_text().strip()
        except OSError as error:
            raise BackupDamagedError(f"{name}: {error.filename} cannot be read.") from error
        if hashlib.sha256(text).hexdigest() != wanted:
            raise BackupDamagedError(f"{name}: manifest.json is damaged.")
        values = json.loads(text)
        if values["format"] != FORMAT:
            raise BackupDamagedError(
                f"{name}: format {values['format']}; this version reads format {FORMAT}."
            )
        values["dump"] = [DumpFile(**row) for row in values["dump"]]
        return GenerationManifest(**values)

    def files(self, name: str) -> Iterator[StoredFile]:
        """The files that a generation names, one after the other."""
        with (self.generation(name) / "files.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                yield StoredFile(**json.loads(line))

    def drop(self, name: str) -> None:
        """Remove a generation; what only it named goes with ``collect``."""
        gone = self.generations_folder / f"{_PARTIAL}dropped-{name}"
        self.generation(name).replace(gone)
        shutil.rmtree(gone)

    def collect(self) -> int:
        """Remove objects that no generation names; returns how many."""
        named = {file.sha256 for name in self.names() for file in self.files(name)}
        count = 0
        for path in self.objects.glob("*/*"):
            if path.name not in named:
                path.unlink()
                count += 1
        return count

    def erasures(self) -> list[ErasedCases]:
        """What was erased from the portal since the first backup, as ``erasures_write`` had it."""
        path = self.folder / "erasures.json"
        found: list[ErasedCases] = json.loads(path.read_text()) if path.exists() else []
        return found

    def erasures_write(self, erasures: list[ErasedCases]) -> None:
        """Keep what was erased beside the generations that were made before."""
        write_json(self.folder / "erasures.json", erasures, durable=True)
