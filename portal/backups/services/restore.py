"""Restoration of a backup: files, then the database, then indexes and erasures."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.core.management import call_command
from django.db import connection
from django.db.utils import DatabaseError

from ml.files import replacing, sync_folder, write_text
from ml.types import Progress, no_progress
from portal.archive.models import Upload
from portal.archive.services.identity import identity_adopt
from portal.archive.storage import files as storage
from portal.backups.dumps import engine_of, require_known
from portal.backups.models import Backup
from portal.backups.repository import DUMP, BackupRepository, GenerationManifest, StoredFile
from portal.backups.services.backup import require_intact
from portal.backups.services.erasures import erasures_repeat
from portal.core.errors import ConflictError
from portal.core.storage_layout import Place, root
from portal.embeddings.services.indexes import indexes_delete
from portal.explore.services.maps import maps_delete
from portal.jobs.models import WorkerHeartbeat
from portal.labs.models import Lab, User


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """Counts of a restoration."""

    manifest: GenerationManifest
    labs: int
    people: int
    indexes: int


def restore(
    *,
    source: Path,
    name: str | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> RestoreReport:
    """Replace the content of this installation by a generation (the newest unless named).

    The dump and the presence of every file are checked first, and each file is hashed while it is
    copied. The database is loaded last, in one transaction. An interrupted restore can be run
    again: until it has ended, the installation counts as empty. Jobs build the search indexes;
    unfinished uploads start again.

    Args:
        overwrite: Replace the database of an installation that is not empty.
    Raises:
        BackupDamagedError: Parts of the backup are damaged; the message names them.
        ConflictError: The installation is not empty, runs on another kind of database or is of an
            older version; the database is in use, or its client programs are missing.
    """
    repository = BackupRepository(source)
    manifest = repository.manifest(name or repository.newest())
    engine = engine_of(manifest.engine)
    require_known(manifest.migrations)
    if not overwrite:
        _require_empty()
    require_intact(manifest, repository.damage(manifest))
    require_intact(manifest, _missing(repository, manifest))
    root().mkdir(parents=True, exist_ok=True)
    marker = Place.RESTORE.path()
    write_text(marker, manifest.name, durable=True)
    _files_copy(repository, manifest, progress)
    progress(0, 0, "database")
    engine.load(repository.generation(manifest.name) / DUMP)
    call_command("migrate", interactive=False, verbosity=0)
    report = _settle(repository, manifest)
    erasures_repeat(repository)
    marker.unlink()
    return report


def _require_empty() -> None:
    """Refuse an installation with data, unless an earlier restore into it was interrupted."""
    if Place.RESTORE.path().exists():
        return
    try:
        has_people = Lab.objects.exists() or User.objects.exists()
    except DatabaseError:
        has_people = False  # not migrated yet
    finally:
        if not connection.in_atomic_block:
            connection.close()
    if has_people or any(True for _ in storage.the_store().files(storage.ASSETS)):
        content = "database holds labs or people" if has_people else "storage holds files"
        raise ConflictError(
            f"A backup is restored only into an empty installation, but this one's {content}. "
            "Point TESSERA_DATABASE_URL and TESSERA_STORAGE at new places, or use --overwrite.",
            code="restore-not-empty",
        )


def _missing(repository: BackupRepository, manifest: GenerationManifest) -> list[str]:
    """Messages for files without content or with a path outside of the storage."""
    return [
        f"{file.path} is missing"
        for file in repository.files(manifest.name)
        if not repository.has_content(file.sha256, file.size_bytes) or not _is_within(file.path)
    ]


def _is_within(path: str) -> bool:
    parts = Path(path).parts
    return bool(parts) and not Path(path).is_absolute() and ".." not in parts


def _files_copy(
    repository: BackupRepository, manifest: GenerationManifest, progress: Progress
) -> None:
    byte_count, damaged, folders = 0, [], set()
    for file in repository.files(manifest.name):
        if not _file_copy(repository, file):
            damaged.append(f"{file.path} is damaged")
        if not storage.is_original(file.path):
            folders.add(storage.resolve(file.path).parent)
        byte_count += file.size_bytes
        progress(byte_count, manifest.size_bytes, "files")
    require_intact(manifest, damaged)
    for folder in folders:
        sync_folder(folder)


def _file_copy(repository: BackupRepository, file: StoredFile) -> bool:
    """Copy one file to its place; False if the content does not match the hash."""
    if storage.is_original(file.path):
        return _original_copy(repository, file)
    target = storage.resolve(file.path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary:
        shutil.copyfile(repository.object_path(file.sha256), temporary)
        is_intact = storage.file_sha256(temporary) == file.sha256
        os.utime(temporary, ns=(file.mtime_ns, file.mtime_ns))
    if not is_intact:
        target.unlink()
    return is_intact


def _original_copy(repository: BackupRepository, file: StoredFile) -> bool:
    received = storage.incoming_path(f"restored-{file.sha256}")
    try:
        shutil.copyfile(repository.object_path(file.sha256), received)
        is_intact = storage.file_sha256(received) == file.sha256
        if is_intact:
            storage.the_store().put(received, file.path)
    finally:
        received.unlink(missing_ok=True)
    return is_intact


def _settle(repository: BackupRepository, manifest: GenerationManifest) -> RestoreReport:
    """Correct rows about processes and unfinished uploads that do not exist any more."""
    WorkerHeartbeat.objects.all().delete()
    for upload in Upload.objects.filter(asset=None):
        storage.incoming_path(str(upload.pk)).touch()
    Upload.objects.filter(asset=None).update(received_bytes=0)
    built = indexes_delete()
    maps_delete()
    identity_adopt()
    Backup.objects.get_or_create(
        destination=str(repository.folder),
        name=manifest.name,
        defaults={
            "taken_at": datetime.fromisoformat(manifest.taken_at),
            "files": manifest.files,
            "size_bytes": manifest.size_bytes,
        },
    )
    return RestoreReport(manifest, Lab.objects.count(), User.objects.count(), built)
