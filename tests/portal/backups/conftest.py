"""Stored files with their rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.archive.models import Asset
from portal.archive.storage import files as archive_storage
from portal.labs.models import Lab


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
