"""A portal with a few files, and the rows that name them; a destination for backups."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from portal.archive import storage as archive_storage
from portal.archive.models import Asset
from portal.labs.models import Lab


@pytest.fixture
def vault_folder(tmp_path: Path, transactional_db: None) -> Path:
    """Where the backups of a test go. The tests' database is made without migrations."""
    MigrationRecorder(connection).ensure_schema()
    return tmp_path / "vault"


@pytest.fixture
def keep_file(lab: Lab, storage: Path, tmp_path: Path):
    """``keep_file(bytes)``: an original with its row, as an upload leaves it."""

    def keep(content: bytes) -> Asset:
        received = tmp_path / "received"
        received.write_bytes(content)
        sha256 = archive_storage.file_sha256(received)
        archive_storage.the_store().put(received, archive_storage.asset_name(lab.pk, sha256))
        return Asset.objects.create(
            lab=lab, sha256=sha256, size_bytes=len(content), media_type="image/*"
        )

    return keep
