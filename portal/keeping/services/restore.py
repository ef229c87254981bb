"""From a backup to an installation: files first, the database last, then what is derived."""

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
from portal.archive import storage
from portal.archive.models import Upload
from portal.archive.services import identity_adopt
from portal.core.errors import ConflictError
from portal.core.storage_layout import Place, root
from portal.jobs.models import WorkerSign
from portal.keeping import rooms
from portal.keeping.dumps import engine_of, require_known
from portal.keeping.models import Backup
from portal.keeping.services.backup import dump_damage, require_whole
from portal.keeping.services.erasing import erasures_repeat
from portal.keeping.vault import GenerationManifest, StoredFile, Vault
from portal.labs.models import Lab, User
from portal.retrieval.services import indexes_forget


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What a restore brought back."""

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
    """Make this installation what a generation (the newest unless named) holds.

    The dump and the presence of every file are checked before anything is touched, and each file
    is hashed as it is copied. The database comes last: until then the installation is empty, and a
    restore that was stopped is begun again. Search indexes are built again by jobs; transfers that
    were under way begin again.

    Args:
        overwrite: also where the installation is not empty: its database is replaced.
    Raises:
        BackupDamagedError: naming what is damaged.
        ConflictError: the installation is not empty, runs on another kind of database or is of an
            older version.
    """
    vault = Vault(source)
    manifest = vault.manifest(name or vault.newest())
    engine = engine_of(manifest.engine)
    require_known(manifest.schema)
    if not overwrite:
        _require_empty()
    damaged = dump_damage(vault, manifest)
    require_whole(manifest, damaged or _missing(vault, manifest))
    root().mkdir(parents=True, exist_ok=True)
    marker = Place.RESTORE.path()
    write_text(marker, manifest.name, durable=True)
    _copy_back(vault, manifest, progress)
    progress(0, 0, "database")
    engine.load(vault.generation(manifest.name), manifest.schema)
    call_command("migrate", interactive=False, verbosity=0)
    report = _settle(vault, manifest)
    erasures_repeat(vault)
    marker.unlink()
    return report


def _require_empty() -> None:
    """Nobody's data is overwritten by mistake."""
    try:
        people = Lab.objects.count() + User.objects.count()
    except DatabaseError:
        people = 0  # not migrated yet
    finally:
        if connection.in_atomic_block is False:
            connection.close()
    has_files = any(True for _ in storage.the_store().files(storage.ASSETS))
    if people or (has_files and not Place.RESTORE.path().exists()):
        what = "database holds labs or people" if people else "storage holds files"
        raise ConflictError(
            f"A backup is restored only into an empty installation, but this one's {what}. Point "
            "TESSERA_DATABASE_URL and TESSERA_STORAGE at new places, or use --overwrite.",
            code="restore-not-empty",
        )


def _missing(vault: Vault, manifest: GenerationManifest) -> list[str]:
    return [
        f"{file.path} is missing"
        for file in vault.files(manifest.name)
        if not vault.holds(file.sha256, file.size_bytes) or not rooms.is_plain(file.path)
    ]


def _copy_back(vault: Vault, manifest: GenerationManifest, progress: Progress) -> None:
    done, damaged, folders = 0, [], set()
    for file in vault.files(manifest.name):
        if not _copy_file(vault, file):
            damaged.append(f"{file.path} is damaged")
        if not storage.is_original(file.path):
            folders.add(storage.resolve(file.path).parent)
        done += file.size_bytes
        progress(done, manifest.size_bytes, "files")
    require_whole(manifest, damaged)
    for folder in folders:
        sync_folder(folder)


def _copy_file(vault: Vault, file: StoredFile) -> bool:
    """Put one file in its place; False if its content is not what its hash says."""
    if storage.is_original(file.path):
        return _copy_original(vault, file)
    target = storage.resolve(file.path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary:
        shutil.copyfile(vault.object_path(file.sha256), temporary)
        is_whole = storage.file_sha256(temporary) == file.sha256
        os.utime(temporary, ns=(file.mtime_ns, file.mtime_ns))
    if not is_whole:
        target.unlink()
    return is_whole


def _copy_original(vault: Vault, file: StoredFile) -> bool:
    received = storage.incoming_path(f"restored-{file.sha256}")
    try:
        shutil.copyfile(vault.object_path(file.sha256), received)
        is_whole = storage.file_sha256(received) == file.sha256
        if is_whole:
            storage.the_store().put(received, file.path)
    finally:
        received.unlink(missing_ok=True)
    return is_whole


def _settle(vault: Vault, manifest: GenerationManifest) -> RestoreReport:
    """Correct what the dump says of files and processes that no longer exist."""
    WorkerSign.objects.all().delete()
    for upload in Upload.objects.filter(asset=None):
        storage.incoming_path(str(upload.pk)).touch()
    Upload.objects.filter(asset=None).update(received_bytes=0)
    built = indexes_forget()
    identity_adopt()
    Backup.objects.get_or_create(
        destination=str(vault.folder),
        name=manifest.name,
        defaults={
            "taken_at": datetime.fromisoformat(manifest.taken_at),
            "files": manifest.files,
            "size_bytes": manifest.size_bytes,
        },
    )
    return RestoreReport(manifest, Lab.objects.count(), User.objects.count(), built)
