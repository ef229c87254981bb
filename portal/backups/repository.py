"""Destination of backups: file contents by their hash, and generations that refer to them.

::

    <repository>/objects/<sha[:2]>/<sha>                 contents, shared by all generations
    <repository>/generations/<name>/manifest.json        description, and hashes of the other files
    <repository>/generations/<name>/manifest.sha256      hash of the manifest
    <repository>/generations/<name>/files.jsonl          one line a file: path, sha256, size, time
    <repository>/generations/<name>/database.dump        the database: an SQLite file, or of pg_dump
    <repository>/erasures.json                           erasures that a restore has to repeat

A generation is written under a temporary name and renamed once it is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypedDict

from ml.files import sync_folder, sync_tree, write_json
from portal.archive.storage import files as storage
from portal.core.errors import ConflictError, NotFoundError

FORMAT = 2  # of a backup; others are refused
DUMP = "database.dump"
FILES = "files.jsonl"
_PARTIAL = ".partial-"


class BackupDamagedError(ConflictError):
    """Parts of a backup are damaged; the message names them."""

    code = "backup-damaged"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the storage in a generation; ``path`` is relative to the storage's root."""

    path: str
    sha256: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class GenerationManifest:
    """Description of a generation.

    Attributes:
        taken_at: when the database was read, ISO 8601.
        engine: ``sqlite`` or ``postgresql``.
        migrations: applied ones, (app, name).
        dump_sha256, files_sha256: hashes of the dump and of the list of files.
        files, size_bytes: count and size of the files of the storage.
        missing: files that rows name and that could not be copied.
    """

    name: str
    taken_at: str
    engine: str
    migrations: list[tuple[str, str]]
    dump_sha256: str
    files_sha256: str
    files: int
    size_bytes: int
    missing: list[str] = field(default_factory=list)
    format: int = FORMAT


class ErasedCases(TypedDict):
    """An erasure: its id, its cases' ids, and when it was done (ISO 8601)."""

    erasure: str
    cases: list[str]
    at: str


class BackupRepository:
    """A folder of backups. One process at a time may write; see ``locked``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = folder / "objects"
        self.generations_folder = folder / "generations"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the repository for this process; ``ConflictError`` if another one holds it."""
        self.generations_folder.mkdir(parents=True, exist_ok=True)
        self.objects.mkdir(exist_ok=True)
        with (self.folder / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConflictError(
                    f"Another backup to {self.folder} is running.", code="backup-under-way"
                ) from None
            for path in self.objects.glob(".*"):  # of a backup that was killed
                path.unlink()
            for path in self.generations_folder.glob(f"{_PARTIAL}*"):
                shutil.rmtree(path)
            yield

    def names(self) -> list[str]:
        """Names of the complete generations, oldest first."""
        if not self.generations_folder.is_dir():
            return []
        folders = self.generations_folder.iterdir()
        return sorted(path.name for path in folders if not path.name.startswith("."))

    def newest(self) -> str:
        """Name of the newest generation; ``NotFoundError`` if there is none."""
        names = self.names()
        if not names:
            raise NotFoundError(f"There is no backup in {self.folder}.", code="no-backup")
        return names[-1]

    def generation(self, name: str) -> Path:
        """Folder of a generation."""
        return self.generations_folder / name

    def object_path(self, sha256: str) -> Path:
        """Path of a content."""
        return self.objects / sha256[:2] / sha256

    def has_content(self, sha256: str, size_bytes: int) -> bool:
        """Return whether a content is in the repository, by hash and size."""
        path = self.object_path(sha256)
        return path.is_file() and path.stat().st_size == size_bytes

    def add(self, source: Path) -> tuple[str, int]:
        """Copy the content of a file unless the repository has it; return its hash and size.

        Raises:
            FileNotFoundError: The file was deleted in the meantime.
        """
        copy = self.objects / ".new"
        try:
            shutil.copyfile(source, copy)
            sha256, size_bytes = storage.file_sha256(copy), copy.stat().st_size
            if not self.has_content(sha256, size_bytes):
                copy.chmod(0o440)
                sync_tree(copy)
                target = self.object_path(sha256)
                target.parent.mkdir(exist_ok=True)
                copy.replace(target)
                sync_folder(target.parent)
        finally:
            copy.unlink(missing_ok=True)  # it must not keep filling a full disk
        return sha256, size_bytes

    @contextmanager
    def partial(self, name: str) -> Iterator[Path]:
        """Temporary folder of a generation, removed unless ``publish`` renames it."""
        folder = self.generations_folder / f"{_PARTIAL}{name}"
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, partial: Path, manifest: GenerationManifest) -> None:
        """Write the manifest and rename the generation to its final name."""
        text = json.dumps(asdict(manifest), indent=1) + "\n"
        (partial / "manifest.json").write_text(text)
        (partial / "manifest.sha256").write_text(hashlib.sha256(text.encode()).hexdigest() + "\n")
        sync_tree(partial)
        partial.replace(self.generation(manifest.name))
        sync_folder(self.generations_folder)

    def manifest(self, name: str) -> GenerationManifest:
        """Manifest of a generation.

        Raises:
            NotFoundError: No generation has this name.
            BackupDamagedError: The manifest is damaged or has another format.
        """
        folder = self.generation(name)
        if not folder.is_dir():
            names = ", ".join(self.names()) or "none"
            raise NotFoundError(f"There is no backup {name} in {self.folder}; available: {names}.")
        try:
            text = (folder / "manifest.json").read_bytes()
            expected = (folder / "manifest.sha256").read_text().strip()
        except OSError as error:
            raise BackupDamagedError(f"{name}: {error.filename} cannot be read.") from error
        if hashlib.sha256(text).hexdigest() != expected:
            raise BackupDamagedError(f"{name}: manifest.json is damaged.")
        values = json.loads(text)
        if values["format"] != FORMAT:
            raise BackupDamagedError(
                f"{name}: format {values['format']}; this version reads format {FORMAT}."
            )
        values["migrations"] = [(app, migration) for app, migration in values["migrations"]]
        return GenerationManifest(**values)

    def damage(self, manifest: GenerationManifest) -> list[str]:
        """Errors of the dump and the list of files, as sentences."""
        damaged = []
        for name, sha256 in ((DUMP, manifest.dump_sha256), (FILES, manifest.files_sha256)):
            path = self.generation(manifest.name) / name
            if not path.is_file():
                damaged.append(f"{name} is missing")
            elif storage.file_sha256(path) != sha256:
                damaged.append(f"{name} is damaged")
        return damaged

    def files(self, name: str) -> Iterator[StoredFile]:
        """The files of a generation."""
        with (self.generation(name) / FILES).open(encoding="utf-8") as lines:
            for line in lines:
                yield StoredFile(**json.loads(line))

    def remove(self, names: Iterable[str]) -> None:
        """Remove generations and the contents that no other generation refers to."""
        for name in names:
            partial = self.generations_folder / f"{_PARTIAL}{name}"
            self.generation(name).replace(partial)
            shutil.rmtree(partial)
        in_use = {file.sha256 for name in self.names() for file in self.files(name)}
        for path in self.objects.glob("*/*"):
            if path.name not in in_use:
                path.unlink()

    def erasures(self) -> list[ErasedCases]:
        """Erasures in the list that ``write_erasures`` stores; empty without one."""
        path = self.folder / "erasures.json"
        erased: list[ErasedCases] = json.loads(path.read_text()) if path.exists() else []
        return erased

    def write_erasures(self, erasures: list[ErasedCases]) -> None:
        """Write the erasures that a restore of an older generation repeats."""
        write_json(self.folder / "erasures.json", erasures, durable=True)
