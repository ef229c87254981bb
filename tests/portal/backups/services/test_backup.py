"""Backups: consistent, incremental, verified, pruned."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from portal.archive.storage import files as archive_storage
from portal.backups.models import Backup
from portal.backups.repository import BackupDamagedError, BackupRepository
from portal.backups.services import backup as backup_module
from portal.backups.services.backup import backup_create, backup_verify
from portal.backups.services.restore import _file_copy
from portal.core.disk import RESERVE
from portal.core.errors import ConflictError

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_backup_contains_the_rows_and_the_files(
    keep_file, storage: Path, backup_folder: Path
) -> None:
    asset = keep_file(b"tissue")
    derived = storage / "derived" / "one" / "thumbnail.jpg"
    derived.parent.mkdir(parents=True)
    derived.write_bytes(b"small")
    manifest = backup_create(destination=backup_folder).manifest
    repository = BackupRepository(backup_folder)
    files = {file.path: file for file in repository.files(manifest.name)}
    original = archive_storage.relative(archive_storage.asset_path(asset.lab_id, asset.sha256))
    assert set(files) == {original, "derived/one/thumbnail.jpg"}
    assert repository.object_path(files[original].sha256).read_bytes() == b"tissue"
    assert backup_verify(destination=backup_folder) == manifest


def test_a_backup_leaves_out_derived_places_and_includes_unknown_ones(
    keep_file, storage: Path, backup_folder: Path
) -> None:
    for room in ("cache", "scratch", "incoming", "indexes", "orphans", "ledger"):
        (storage / room).mkdir()
        (storage / room / "file").write_bytes(room.encode())
    (storage / "identity.json").write_text("{}")
    (storage / RESERVE).write_bytes(b"room that is held")
    manifest = backup_create(destination=backup_folder).manifest
    paths = {file.path for file in BackupRepository(backup_folder).files(manifest.name)}
    assert paths == {"ledger/file", "identity.json"}


def test_the_second_backup_copies_only_new_files(
    keep_file, storage: Path, backup_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_file(b"first")
    (storage / "derived").mkdir()
    (storage / "derived" / "old").write_bytes(b"made")
    first = backup_create(destination=backup_folder)
    keep_file(b"second")
    read: list[str] = []
    add = BackupRepository.add

    def noted(self: BackupRepository, path: Path) -> tuple[str, int]:
        read.append(path.name)
        return add(self, path)

    monkeypatch.setattr(BackupRepository, "add", noted)
    second = backup_create(destination=backup_folder)
    assert (first.new_files, second.new_files, second.new_bytes) == (2, 1, 6)
    assert len(read) == 1
    assert second.manifest.files == 3
    assert [backup.name for backup in Backup.objects.order_by("taken_at")] == [
        first.manifest.name,
        second.manifest.name,
    ]


def test_a_derived_file_that_changed_is_copied_again(
    storage: Path, db: None, backup_folder: Path
) -> None:
    made = storage / "derived" / "one"
    made.parent.mkdir()
    made.write_bytes(b"before")
    backup_create(destination=backup_folder)
    made.write_bytes(b"after!")
    manifest = backup_create(destination=backup_folder).manifest
    (file,) = BackupRepository(backup_folder).files(manifest.name)
    assert BackupRepository(backup_folder).object_path(file.sha256).read_bytes() == b"after!"


def test_a_file_deleted_during_the_backup_is_in_neither_dump_nor_files(
    keep_file, backup_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset, others = keep_file(b"goes"), backup_module.other_files
    deleted: list[bool] = []

    def delete_first():
        if not deleted:
            deleted.append(True)
            archive_storage.asset_path(asset.lab_id, asset.sha256).unlink()
            asset.delete()
        return others()

    monkeypatch.setattr(backup_module, "other_files", delete_first)
    manifest = backup_create(destination=backup_folder).manifest
    assert (manifest.missing, manifest.files) == ([], 0)


def test_a_missing_file_is_reported_and_the_others_are_backed_up(
    keep_file, backup_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost, stored = keep_file(b"lost"), keep_file(b"kept")
    archive_storage.asset_path(lost.lab_id, lost.sha256).unlink()
    with pytest.raises(CommandError, match=lost.sha256):
        call_command("backup", str(backup_folder))
    (file,) = BackupRepository(backup_folder).files(BackupRepository(backup_folder).newest())
    assert file.sha256 == stored.sha256


def test_an_original_with_changed_bytes_is_reported_as_missing(
    keep_file, backup_folder: Path
) -> None:
    asset = keep_file(b"right")
    path = archive_storage.asset_path(asset.lab_id, asset.sha256)
    path.chmod(0o640)
    path.write_bytes(b"wrong")
    manifest = backup_create(destination=backup_folder).manifest
    assert manifest.missing == [archive_storage.relative(path)]


@pytest.mark.parametrize("part", ["object", "list", "dump", "manifest", "gone"])
def test_a_damaged_backup_is_refused_by_name(keep_file, backup_folder: Path, part: str) -> None:
    asset = keep_file(b"whole")
    name = backup_create(destination=backup_folder).manifest.name
    repository = BackupRepository(backup_folder)
    folder = repository.generation(name)
    dump = folder / "database.dump"
    path, result = {
        "object": (repository.object_path(asset.sha256), asset.sha256),
        "gone": (repository.object_path(asset.sha256), f"{asset.sha256} is missing"),
        "list": (folder / "files.jsonl", "files.jsonl is damaged"),
        "dump": (dump, f"{dump.name} is damaged"),
        "manifest": (folder / "manifest.json", "manifest.json is damaged"),
    }[part]
    path.chmod(0o640)
    if part == "gone":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with pytest.raises(BackupDamagedError, match=result):
        backup_verify(destination=backup_folder)
    with pytest.raises(CommandError, match=name):
        call_command("backup", str(backup_folder), "--verify")


def test_a_damaged_file_is_not_restored(keep_file, storage: Path, backup_folder: Path) -> None:
    keep_file(b"original")
    (storage / "derived").mkdir()
    (storage / "derived" / "file").write_bytes(b"made of it")
    manifest, repository = (
        backup_create(destination=backup_folder).manifest,
        BackupRepository(backup_folder),
    )
    for file in repository.files(manifest.name):
        stored = repository.object_path(file.sha256)
        assert _file_copy(repository, file)
        stored.chmod(0o640)
        stored.write_bytes(b"x" * file.size_bytes)  # as long as it was: only the hash can tell
        (storage / file.path).unlink()
        assert not _file_copy(repository, file)
        assert not (storage / file.path).exists()


def test_old_generations_are_removed_with_their_unshared_contents(
    keep_file, backup_folder: Path
) -> None:
    old = keep_file(b"old")
    first = backup_create(destination=backup_folder).manifest.name
    old.delete()
    new = keep_file(b"new")
    second = backup_create(destination=backup_folder).manifest.name
    report = backup_create(destination=backup_folder, keep=2)
    repository = BackupRepository(backup_folder)
    assert report.removed == (first,)
    assert repository.names() == [second, report.manifest.name]
    assert not repository.object_path(old.sha256).exists()
    assert repository.object_path(new.sha256).exists()
    assert Backup.objects.get(name=first).gone_at is not None
    backup_verify(destination=backup_folder, name=second)


def test_two_backups_to_one_destination_exclude_each_other(
    backup_folder: Path, storage: Path, db: None
) -> None:
    with BackupRepository(backup_folder).locked(), pytest.raises(ConflictError, match="is running"):
        backup_create(destination=backup_folder)


def test_remains_of_a_killed_backup_are_removed(
    keep_file, backup_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = backup_folder / "generations" / ".partial-20200101T000000Z"
    left.mkdir(parents=True)
    name = backup_create(destination=backup_folder).manifest.name
    assert BackupRepository(backup_folder).names() == [name]
    assert not left.exists()


def test_the_command_lists_and_verifies(
    keep_file, backup_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_file(b"one")
    call_command("backup", str(backup_folder), "--keep", "3")
    call_command("backup", str(backup_folder), "--list")
    call_command("backup", str(backup_folder), "--verify")
    taken, listed, verified = capsys.readouterr().out.splitlines()
    assert "1 files, 3 bytes; new: 1 files" in taken
    assert connection.vendor in listed
    assert verified.endswith("as written")


@pytest.mark.parametrize("version", ["", "9.6.24"])
def test_a_client_program_of_postgresql_that_is_missing_or_old_is_named(
    backup_folder: Path, storage: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite needs no program")
    programs = backup_folder.with_name("programs")
    programs.mkdir()
    if version:
        (programs / "pg_dump").write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {version}'\n")
        (programs / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    server = str(connection.pg_version // 10000)
    with pytest.raises(CommandError, match=rf"pg_dump.*{server}"):
        call_command("backup", str(backup_folder))
    assert BackupRepository(backup_folder).names() == []
