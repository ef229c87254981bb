"""What a restore refuses before it touches anything; ``tests/killing`` brings a whole lab back."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from portal.archive import storage as archive_storage
from portal.core.errors import ConflictError
from portal.keeping.services import backup_take
from portal.keeping.services.restore import restore
from portal.keeping.vault import BackupDamagedError, Vault
from portal.labs.models import Lab

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a restore did, in order; no database is replaced in these tests."""
    did: list[str] = []
    restoring = import_module("portal.keeping.services.restore")  # its package names the function

    def noted(name: str) -> Any:
        return lambda *_, **__: did.append(name)

    loading = SimpleNamespace(load=noted("database"))
    monkeypatch.setattr(restoring, "engine_of", lambda name: loading)
    for name in ("require_known", "call_command", "_settle", "erasures_repeat"):
        monkeypatch.setattr(restoring, name, noted(name))
    monkeypatch.setattr(restoring, "_copy_back", noted("files"))
    return did


def test_an_installation_with_people_or_files_is_left_as_it_is(
    keep_file, storage: Path, vault_folder: Path, touched: list[str]
) -> None:
    keep_file(b"ours")
    backup_take(destination=vault_folder)
    with pytest.raises(ConflictError, match="database holds labs or people"):
        restore(source=vault_folder)
    Lab.objects.all().delete()
    with pytest.raises(ConflictError, match="storage holds files"):
        restore(source=vault_folder)
    assert touched == ["require_known"] * 2
    restore(source=vault_folder, overwrite=True)
    assert touched[2:] == [
        *("require_known", "files", "database", "call_command", "_settle", "erasures_repeat")
    ]


def test_a_file_that_the_backup_lacks_is_named_before_anything_is_touched(
    keep_file, vault_folder: Path, touched: list[str]
) -> None:
    asset = keep_file(b"lost")
    backup_take(destination=vault_folder)
    Vault(vault_folder).object_path(asset.sha256).unlink()
    with pytest.raises(BackupDamagedError, match=f"{asset.sha256} is missing"):
        restore(source=vault_folder, overwrite=True)
    assert touched == ["require_known"]


def test_a_path_that_leads_out_of_the_storage_is_refused(
    keep_file, vault_folder: Path, touched: list[str]
) -> None:
    """Whoever can write the list can write its hash too."""
    keep_file(b"bytes")
    vault = Vault(vault_folder)
    manifest = backup_take(destination=vault_folder).manifest
    (file,) = vault.files(manifest.name)
    folder = vault.generation(manifest.name)
    for path in ("../outside", "/etc/outside"):
        (folder / "files.jsonl").write_text(json.dumps(asdict(replace(file, path=path))) + "\n")
        sha256 = archive_storage.file_sha256(folder / "files.jsonl")
        text = json.dumps(asdict(replace(manifest, files_sha256=sha256)))
        (folder / "manifest.json").write_text(text)
        (folder / "manifest.sha256").write_text(hashlib.sha256(text.encode()).hexdigest())
        with pytest.raises(BackupDamagedError, match=path):
            restore(source=vault_folder, overwrite=True)
    assert set(touched) == {"require_known"}


def test_a_generation_that_is_being_written_is_never_the_newest(
    keep_file, vault_folder: Path
) -> None:
    name = backup_take(destination=vault_folder).manifest.name
    (vault_folder / "generations" / ".partial-99990101T000000Z").mkdir()
    assert (Vault(vault_folder).names(), Vault(vault_folder).newest()) == ([name], name)
