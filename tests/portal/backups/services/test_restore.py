"""Restores: what they bring back, and what they refuse before they touch anything."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import pytest
from django.db import DatabaseError

from portal.archive.models import Asset
from portal.archive.storage import files as archive_storage
from portal.backups.dumps import engine_name, engine_of
from portal.backups.models import Backup
from portal.backups.repository import BackupDamagedError, BackupRepository
from portal.backups.services.backup import backup_create
from portal.backups.services.restore import restore
from portal.core.errors import ConflictError
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db(transaction=True)
KeepFile = Callable[[bytes], Asset]


def test_a_restore_restores_rows_and_files(
    keep_file: KeepFile, storage: Path, backup_folder: Path
) -> None:
    asset = keep_file(b"tissue")
    name = backup_create(destination=backup_folder).manifest.name
    asset.delete()
    Lab.objects.all().delete()
    shutil.rmtree(storage / "assets")
    report = restore(source=backup_folder)
    assert (report.labs, report.manifest.name) == (1, name)
    again = Asset.objects.get(sha256=asset.sha256)
    assert archive_storage.asset_path(again.lab_id, again.sha256).read_bytes() == b"tissue"
    assert Backup.objects.get().name == name


def test_an_installation_with_people_or_files_is_replaced_only_with_overwrite(
    keep_file: KeepFile, backup_folder: Path
) -> None:
    keep_file(b"ours")
    backup_create(destination=backup_folder)
    Lab.objects.update(name="Since then")
    with pytest.raises(ConflictError, match="people"):
        restore(source=backup_folder)
    assert Lab.objects.get().name == "Since then"
    Lab.objects.all().delete()
    with pytest.raises(ConflictError, match="files"):
        restore(source=backup_folder)
    restore(source=backup_folder, overwrite=True)
    assert Lab.objects.get().name != "Since then"


def test_an_interrupted_restore_can_be_run_again(
    keep_file: KeepFile, storage: Path, backup_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even after the rows came back: erasures had not been repeated yet."""
    keep_file(b"ours")
    backup_create(destination=backup_folder)
    restoring = import_module("portal.backups.services.restore")  # its package names the function

    def stop(_: object) -> None:
        raise OSError("the power went")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="power"):
        patch.setattr(restoring, "erasures_repeat", stop)
        restore(source=backup_folder, overwrite=True)
    assert Lab.objects.exists()
    assert restore(source=backup_folder).labs == 1
    with pytest.raises(ConflictError, match="empty installation"):
        restore(source=backup_folder)


def test_an_unreadable_dump_leaves_the_database_unchanged(
    keep_file: KeepFile, backup_folder: Path
) -> None:
    keep_file(b"ours")
    name = backup_create(destination=backup_folder).manifest.name
    dump = BackupRepository(backup_folder).generation(name) / "database.dump"
    data = dump.read_bytes()
    for damaged in (b"\0" * len(data), data[: len(data) // 2]):
        dump.write_bytes(damaged)
        with pytest.raises((DatabaseError, ConflictError)):
            engine_of(engine_name()).load(dump)
        assert Asset.objects.count() == 1


def test_a_missing_file_is_reported_before_anything_is_changed(
    keep_file: KeepFile, storage: Path, backup_folder: Path
) -> None:
    asset = keep_file(b"lost")
    backup_create(destination=backup_folder)
    BackupRepository(backup_folder).object_path(asset.sha256).unlink()
    Lab.objects.update(name="As it was")
    with pytest.raises(BackupDamagedError, match=f"{asset.sha256} is missing"):
        restore(source=backup_folder, overwrite=True)
    assert Lab.objects.get().name == "As it was"
    assert not (storage / "restore-under-way").exists()


def test_a_path_that_leads_out_of_the_storage_is_refused(
    keep_file: KeepFile, storage: Path, backup_folder: Path
) -> None:
    """Whoever can write the list can write its hash too."""
    keep_file(b"bytes")
    repository = BackupRepository(backup_folder)
    manifest = backup_create(destination=backup_folder).manifest
    (file,) = repository.files(manifest.name)
    folder = repository.generation(manifest.name)
    for path in ("../outside", "/etc/outside"):
        (folder / "files.jsonl").write_text(json.dumps(asdict(replace(file, path=path))) + "\n")
        sha256 = archive_storage.file_sha256(folder / "files.jsonl")
        text = json.dumps(asdict(replace(manifest, files_sha256=sha256)))
        (folder / "manifest.json").write_text(text)
        (folder / "manifest.sha256").write_text(hashlib.sha256(text.encode()).hexdigest())
        with pytest.raises(BackupDamagedError, match=path):
            restore(source=backup_folder, overwrite=True)
    assert not (storage / "restore-under-way").exists()
