"""Backups: consistent, incremental, verified, pruned."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from portal.archive import storage as archive_storage
from portal.core.disk import RESERVE
from portal.core.errors import ConflictError
from portal.keeping.models import Backup
from portal.keeping.services import backup as backup_module
from portal.keeping.services import backup_take, backup_verify
from portal.keeping.services.restore import _copy_file
from portal.keeping.vault import BackupDamagedError, Vault

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_backup_holds_the_rows_and_the_files(
    keep_file, storage: Path, vault_folder: Path
) -> None:
    asset = keep_file(b"tissue")
    derived = storage / "derived" / "one" / "thumbnail.jpg"
    derived.parent.mkdir(parents=True)
    derived.write_bytes(b"small")
    manifest = backup_take(destination=vault_folder).manifest
    vault = Vault(vault_folder)
    files = {file.path: file for file in vault.files(manifest.name)}
    original = archive_storage.relative(archive_storage.asset_path(asset.lab_id, asset.sha256))
    assert set(files) == {original, "derived/one/thumbnail.jpg"}
    assert vault.object_path(files[original].sha256).read_bytes() == b"tissue"
    assert manifest.rows["archive_asset"] == 1
    assert asset.sha256 in _dumped(vault, manifest.name)
    assert backup_verify(destination=vault_folder) == manifest


def test_rooms_that_can_be_made_again_stay_out_and_unknown_ones_come_in(
    keep_file, storage: Path, vault_folder: Path
) -> None:
    for room in ("cache", "scratch", "incoming", "indexes", "trash", "ledger"):
        (storage / room).mkdir()
        (storage / room / "file").write_bytes(room.encode())
    (storage / "identity.json").write_text("{}")
    (storage / RESERVE).write_bytes(b"room that is held")
    manifest = backup_take(destination=vault_folder).manifest
    paths = {file.path for file in Vault(vault_folder).files(manifest.name)}
    assert paths == {"ledger/file", "identity.json"}


def test_the_second_backup_copies_only_what_is_new(
    keep_file, storage: Path, vault_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_file(b"first")
    (storage / "derived").mkdir()
    (storage / "derived" / "old").write_bytes(b"made")
    first = backup_take(destination=vault_folder)
    keep_file(b"second")
    read: list[str] = []
    put = Vault.put
    monkeypatch.setattr(Vault, "put", lambda self, path: read.append(path.name) or put(self, path))
    second = backup_take(destination=vault_folder)
    assert (first.new_files, second.new_files, second.new_bytes) == (2, 1, 6)
    assert len(read) == 1
    assert second.manifest.files == 3
    assert [backup.name for backup in Backup.objects.order_by("taken_at")] == [
        first.manifest.name,
        second.manifest.name,
    ]


def test_a_derived_file_that_changed_is_copied_again(
    storage: Path, db: None, vault_folder: Path
) -> None:
    made = storage / "derived" / "one"
    made.parent.mkdir()
    made.write_bytes(b"before")
    backup_take(destination=vault_folder)
    made.write_bytes(b"after!")
    manifest = backup_take(destination=vault_folder).manifest
    (file,) = Vault(vault_folder).files(manifest.name)
    assert Vault(vault_folder).object_path(file.sha256).read_bytes() == b"after!"


def test_what_was_deleted_while_files_were_copied_is_in_neither(
    keep_file, vault_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset, others = keep_file(b"goes"), backup_module.rooms.others
    deleted: list[bool] = []

    def delete_first():
        if not deleted:
            deleted.append(True)
            archive_storage.asset_path(asset.lab_id, asset.sha256).unlink()
            asset.delete()
        return others()

    monkeypatch.setattr(backup_module.rooms, "others", delete_first)
    manifest = backup_take(destination=vault_folder).manifest
    assert (manifest.missing, manifest.files, manifest.rows["archive_asset"]) == ([], 0, 0)


def test_a_file_lost_before_is_named_and_the_rest_is_kept(
    keep_file, vault_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost, kept = keep_file(b"lost"), keep_file(b"kept")
    archive_storage.asset_path(lost.lab_id, lost.sha256).unlink()
    with pytest.raises(CommandError, match=lost.sha256):
        call_command("backup", str(vault_folder))
    (file,) = Vault(vault_folder).files(Vault(vault_folder).newest())
    assert file.sha256 == kept.sha256


def test_an_original_whose_bytes_changed_is_not_kept_as_if_it_were_whole(
    keep_file, vault_folder: Path
) -> None:
    asset = keep_file(b"right")
    path = archive_storage.asset_path(asset.lab_id, asset.sha256)
    path.chmod(0o640)
    path.write_bytes(b"wrong")
    manifest = backup_take(destination=vault_folder).manifest
    assert manifest.missing == [archive_storage.relative(path)]


@pytest.mark.parametrize("part", ["object", "list", "dump", "manifest", "gone"])
def test_a_damaged_backup_is_refused_by_name(keep_file, vault_folder: Path, part: str) -> None:
    asset = keep_file(b"whole")
    name = backup_take(destination=vault_folder).manifest.name
    vault = Vault(vault_folder)
    folder = vault.generation(name)
    dump = next(iter(sorted(folder.glob("database.*"))))
    path, said = {
        "object": (vault.object_path(asset.sha256), asset.sha256),
        "gone": (vault.object_path(asset.sha256), f"{asset.sha256} is missing"),
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
    with pytest.raises(BackupDamagedError, match=said):
        backup_verify(destination=vault_folder)
    with pytest.raises(CommandError, match=name):
        call_command("backup", str(vault_folder), "--verify")


def test_a_file_that_was_damaged_in_the_backup_is_not_put_in_its_place(
    keep_file, storage: Path, vault_folder: Path
) -> None:
    keep_file(b"original")
    (storage / "derived").mkdir()
    (storage / "derived" / "file").write_bytes(b"made of it")
    manifest, vault = backup_take(destination=vault_folder).manifest, Vault(vault_folder)
    for file in vault.files(manifest.name):
        kept = vault.object_path(file.sha256)
        assert _copy_file(vault, file)
        kept.chmod(0o640)
        kept.write_bytes(b"x" * file.size_bytes)  # as long as it was: only the hash can tell
        (storage / file.path).unlink()
        assert not _copy_file(vault, file)
        assert not (storage / file.path).exists()


def test_old_generations_go_and_what_only_they_named(keep_file, vault_folder: Path) -> None:
    old = keep_file(b"old")
    first = backup_take(destination=vault_folder).manifest.name
    old.delete()
    new = keep_file(b"new")
    second = backup_take(destination=vault_folder).manifest.name
    report = backup_take(destination=vault_folder, keep=2)
    vault = Vault(vault_folder)
    assert report.pruned == (first,)
    assert vault.names() == [second, report.manifest.name]
    assert not vault.object_path(old.sha256).exists()
    assert vault.object_path(new.sha256).exists()
    assert Backup.objects.get(name=first).gone_at is not None
    backup_verify(destination=vault_folder, name=second)


def test_two_backups_to_one_place_do_not_meet(vault_folder: Path, storage: Path, db: None) -> None:
    with Vault(vault_folder).locked(), pytest.raises(ConflictError, match="is running"):
        backup_take(destination=vault_folder)


def test_what_a_killed_backup_left_is_no_generation_and_goes(
    keep_file, vault_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = vault_folder / "generations" / ".partial-20200101T000000Z"
    left.mkdir(parents=True)
    name = backup_take(destination=vault_folder).manifest.name
    assert Vault(vault_folder).names() == [name]
    assert not left.exists()


def test_the_command_lists_and_verifies(
    keep_file, vault_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_file(b"one")
    call_command("backup", str(vault_folder), "--keep", "3")
    call_command("backup", str(vault_folder), "--list")
    call_command("backup", str(vault_folder), "--verify")
    taken, listed, verified = capsys.readouterr().out.splitlines()
    assert "1 files, 3 bytes; new: 1 files" in taken
    assert connection.vendor in listed
    assert verified.endswith("as written")


def _dumped(vault: Vault, name: str) -> str:
    folder = vault.generation(name)
    if connection.vendor == "postgresql":
        return gzip.decompress((folder / "database.archive_asset.copy.gz").read_bytes()).decode()
    with sqlite3.connect(folder / "database.sqlite3") as copy:
        return str(copy.execute("SELECT sha256 FROM archive_asset").fetchall())
