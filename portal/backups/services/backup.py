"""Backups: a dump of the database, then every file that the dump refers to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from django.utils import timezone

from ml.types import Progress, no_progress
from portal.archive.storage import files as storage
from portal.backups.dumps import engine_name, engine_of
from portal.backups.models import Backup
from portal.backups.repository import (
    DUMP,
    FILES,
    BackupDamagedError,
    BackupRepository,
    GenerationManifest,
    StoredFile,
)
from portal.backups.services.erasures import erasures_note as erasures_pass_on
from portal.backups.stored_files import BackupFile, originals_of, other_files, paths_of

MAX_DUMPS = 3
"""Attempts before a file that rows refer to counts as missing: each later dump is without the rows
that were deleted while files were copied."""
MAX_NAMED = 20  # damaged files in a message


@dataclass(frozen=True, slots=True)
class BackupReport:
    """Result of a backup; ``holding``: older generations that contain data erased since."""

    manifest: GenerationManifest
    new_files: int
    new_bytes: int
    removed: tuple[str, ...]
    holding: tuple[str, ...] = ()


def backup_create(
    *,
    destination: Path,
    keep: int | None = None,
    forget_erased: bool = False,
    progress: Progress = no_progress,
) -> BackupReport:
    """Back up a running portal as a new generation.

    The dump is made before the files are copied, so every request that succeeded earlier is in
    both. If a file of the dump is deleted in between, the backup starts again. Contents that the
    destination has are not copied.

    Args:
        keep: Number of generations to keep, including the new one; None: all.
        forget_erased: Remove older generations that contain data erased since.
    Raises:
        ConflictError: Another backup to this destination is running, the database is damaged, or
            its client programs are missing.
    """
    repository = BackupRepository(destination)
    with repository.locked():
        manifest, new = _generation_write(repository, progress)
        Backup.objects.create(
            destination=str(destination),
            name=manifest.name,
            taken_at=datetime.fromisoformat(manifest.taken_at),
            files=manifest.files,
            size_bytes=manifest.size_bytes,
            new_bytes=sum(new.values()),
        )
        removed = tuple(repository.names()[:-keep]) if keep is not None else ()
        _remove(repository, removed)
        holding = tuple(erasures_pass_on(repository))
        if forget_erased:
            _remove(repository, holding)
            removed, holding = removed + holding, ()
    return BackupReport(manifest, len(new), sum(new.values()), removed, holding)


def backup_verify(
    *, destination: Path, name: str | None = None, progress: Progress = no_progress
) -> GenerationManifest:
    """Read every byte of a generation (the newest unless named) and compare it with its hash.

    Raises:
        BackupDamagedError: Files are missing or damaged; the message names them.
    """
    repository = BackupRepository(destination)
    manifest = repository.manifest(name or repository.newest())
    require_intact(manifest, repository.damage(manifest))
    damaged, byte_count = [], 0
    for file in repository.files(manifest.name):
        path = repository.object_path(file.sha256)
        if not path.is_file():
            damaged.append(f"{file.path} is missing")
        elif storage.file_sha256(path) != file.sha256:
            damaged.append(f"{file.path} is damaged ({path.relative_to(destination)})")
        byte_count += file.size_bytes
        progress(byte_count, manifest.size_bytes, "verifying")
    require_intact(manifest, damaged)
    return manifest


def require_intact(manifest: GenerationManifest, damaged: list[str]) -> None:
    """Raise ``BackupDamagedError`` if anything is damaged."""
    if damaged:
        others = f"; and {len(damaged) - MAX_NAMED} more" if len(damaged) > MAX_NAMED else ""
        raise BackupDamagedError(
            f"The backup {manifest.name} cannot be used: {'; '.join(damaged[:MAX_NAMED])}{others}.",
            details={"damaged": damaged},
        )


def _generation_write(
    repository: BackupRepository, progress: Progress
) -> tuple[GenerationManifest, dict[str, int]]:
    """Write a generation; return its manifest and the sizes of new contents by hash."""
    engine, stored_files, new = engine_name(), _known_files(repository), dict[str, int]()
    name = _free_name(repository, f"{timezone.now():%Y%m%dT%H%M%SZ}")
    with repository.partial(name) as folder:
        for _ in range(MAX_DUMPS):
            progress(0, 0, "database")
            taken_at = timezone.now()
            with engine_of(engine).dump(folder / DUMP) as query:
                originals, named_paths = originals_of(query), paths_of(query)
                migrations = query("SELECT app, name FROM django_migrations ORDER BY app, name")
            files_to_store = [*originals, *other_files()]
            files: dict[str, StoredFile] = {}
            for number, file in enumerate(files_to_store, start=1):
                stored = _file_store(repository, file, stored_files, new)
                if stored is not None:
                    files[file.path] = stored_files[file.path] = stored
                progress(number, len(files_to_store), "files")
            missing = ({file.path for file in files_to_store} | named_paths) - files.keys()
            if not missing:
                break
        lines = (json.dumps(asdict(file)) + "\n" for file in files.values())
        (folder / FILES).write_text("".join(lines), encoding="utf-8")
        manifest = GenerationManifest(
            name=name,
            taken_at=taken_at.isoformat(),
            engine=engine,
            migrations=[(app, migration) for app, migration in migrations],
            dump_sha256=storage.file_sha256(folder / DUMP),
            files_sha256=storage.file_sha256(folder / FILES),
            files=len(files),
            size_bytes=sum(file.size_bytes for file in files.values()),
            missing=sorted(missing),
        )
        repository.publish(folder, manifest)
    return manifest, new


def _file_store(
    repository: BackupRepository,
    file: BackupFile,
    stored_files: dict[str, StoredFile],
    new: dict[str, int],
) -> StoredFile | None:
    """Copy a file into the repository; None if it is missing, or an original with other bytes.

    A file is not read if its hash is known: of an original by its name, of others if size and time
    are those of the last backup.
    """
    try:
        size_bytes, mtime_ns = _size_and_time(file.path)
        before, sha256 = stored_files.get(file.path), file.sha256
        if before and (before.size_bytes, before.mtime_ns) == (size_bytes, mtime_ns):
            sha256 = before.sha256
        if not (sha256 and repository.has_content(sha256, size_bytes)):
            sha256, size_bytes = repository.add(storage.resolve(file.path))
            new[sha256] = size_bytes
    except FileNotFoundError:
        return None
    if file.sha256 and (sha256, size_bytes) != (file.sha256, file.size_bytes):
        return None
    return StoredFile(file.path, sha256, size_bytes, mtime_ns)


def _size_and_time(path: str) -> tuple[int, int]:
    """Size and modification time in ns; an original in a bucket is not fetched."""
    if not storage.is_original(path):
        stat = storage.resolve(path).stat()
        return stat.st_size, stat.st_mtime_ns
    stored = storage.the_store().stat(path)
    if stored is None:
        raise FileNotFoundError(path)
    return stored.size_bytes, int(stored.changed_s * 1e9)


def _known_files(repository: BackupRepository) -> dict[str, StoredFile]:
    """Files of the newest generation by path; none if it cannot be read."""
    names = repository.names()
    try:
        if names and not repository.damage(repository.manifest(names[-1])):
            return {file.path: file for file in repository.files(names[-1])}
    except BackupDamagedError:
        pass
    return {}


def _free_name(repository: BackupRepository, name: str) -> str:
    """Name with a number appended if another backup was made within the same second."""
    names, number = set(repository.names()), 1
    free = name
    while free in names:
        number += 1
        free = f"{name}-{number}"
    return free


def _remove(repository: BackupRepository, names: tuple[str, ...]) -> None:
    if names:
        repository.remove(names)
        rows = Backup.objects.filter(destination=str(repository.folder), name__in=names)
        rows.filter(gone_at=None).update(gone_at=timezone.now())
