"""Backups and restores whose disk fills: what was there stays, and the next run completes."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from portal.archive.models import Asset
from portal.archive.storage import files as volume
from portal.backups.repository import BackupRepository
from portal.backups.services.backup import backup_create, backup_verify
from portal.backups.services.restore import restore
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db(transaction=True)
MIB = 2**20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A volume of 3 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no volume of its own can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def grow(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)


def content(number: int) -> bytes:
    return bytes([number]) * (2 * MIB + number)


def test_a_backup_to_a_full_disk_preserves_the_previous_one_and_leaves_no_files(
    backup_folder: Path, keep_file: Callable[[bytes], Asset], small: Path
) -> None:
    keep_file(b"small")
    first = backup_create(destination=small).manifest.name
    before = sorted(path for path in small.rglob("*") if path.is_file())
    keep_file(content(1))
    keep_file(content(2))
    with pytest.raises(CommandError, match=r"No space left|is full"):
        call_command("backup", str(small), stdout=StringIO(), stderr=StringIO())
    repository = BackupRepository(small)
    assert repository.names() == [first]
    assert backup_verify(destination=small).name == first
    left = {path for path in small.rglob("*") if path.is_file()} - set(before)
    assert all(path.name == volume.file_sha256(path) for path in left), "whole contents alone"
    grow(small)
    second = backup_create(destination=small).manifest
    assert backup_verify(destination=small).name == second.name
    assert second.missing == []


def test_a_restore_onto_a_full_disk_leaves_the_database_and_continues(
    backup_folder: Path,
    keep_file: Callable[[bytes], Asset],
    small: Path,
    settings: Any,
) -> None:
    assets = [keep_file(content(number)) for number in (1, 2)]
    backup_create(destination=backup_folder)
    settings.TESSERA_STORAGE = small
    Lab.objects.update(name="As it was")
    with pytest.raises(OSError) as raised:
        restore(source=backup_folder, overwrite=True)
    assert raised.value.errno == errno.ENOSPC or "full" in str(raised.value)
    assert set(Lab.objects.values_list("name", flat=True)) == {"As it was"}
    assert not list((small / "incoming").iterdir())
    grow(small)
    restore(source=backup_folder, overwrite=True)
    for asset in assets:
        path = volume.asset_path(asset.lab_id, asset.sha256)
        assert volume.file_sha256(path) == asset.sha256
