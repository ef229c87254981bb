"""Assets: bytes and row come and go together; the orphan folder between."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError

from portal.archive.models import Asset, Case, Slide, Upload
from portal.archive.services.assets import asset_orphan, asset_purge, asset_release, asset_restore
from portal.archive.services.items import item_delete
from portal.archive.services.trash import trash_purge
from portal.archive.services.uploads import upload_receive
from portal.archive.storage.files import asset_name, asset_path
from portal.archive.storage.orphans import orphan_list
from portal.jobs.models import Job
from portal.labs.models import User
from tests.portal.archive.support import files_below, picture

pytestmark = pytest.mark.django_db


@pytest.fixture
def deleted(
    case: Case, receive: Any, annotator: User, django_capture_on_commit_callbacks: Any
) -> Asset:
    """The asset of an item that was deleted."""
    item = receive(case, picture(), "a.png").item
    asset = item.asset
    Slide.objects.update(state="failed")
    Job.objects.update(state="failed")
    with django_capture_on_commit_callbacks(execute=True):
        trash_purge(entry=item_delete(item=item, user=annotator), user=None)
    return Asset(lab_id=asset.lab_id, sha256=asset.sha256)


def test_a_deleted_original_waits_in_the_orphan_folder_and_comes_back(
    deleted: Asset, storage: Path
) -> None:
    lab_id, sha256 = deleted.lab_id, deleted.sha256
    assert not asset_path(lab_id, sha256).exists()
    assert [item.home for item in orphan_list()] == [asset_name(lab_id, sha256)]
    assert asset_restore(lab_id=lab_id, sha256=sha256)
    assert asset_path(lab_id, sha256).read_bytes() == picture()
    assert not asset_restore(lab_id=lab_id, sha256=sha256)


def test_a_purge_leaves_no_copy(deleted: Asset, storage: Path) -> None:
    lab_id, sha256 = deleted.lab_id, deleted.sha256
    place = asset_path(lab_id, sha256)
    place.write_bytes(b"again")
    assert asset_purge(lab_id=lab_id, sha256=sha256) == 2
    assert not [name for name in files_below(storage) if sha256 in name]


def test_releasing_with_purge_deletes_for_good(
    case: Case, annotator: User, storage: Path, django_capture_on_commit_callbacks: Any
) -> None:
    upload = upload_receive(case=case, file=io.BytesIO(picture()), filename="a.png", user=annotator)
    asset = upload.asset
    assert asset is not None
    assert not asset_release(asset, purge=True)  # the upload names it
    Upload.objects.all().delete()
    with django_capture_on_commit_callbacks(execute=True):
        assert asset_release(asset, purge=True)
    assert not [name for name in files_below(storage) if asset.sha256 in name]


def test_referenced_assets_are_neither_orphaned_nor_purged(
    case: Case, annotator: User, storage: Path
) -> None:
    upload = upload_receive(case=case, file=io.BytesIO(picture()), filename="a.png", user=annotator)
    asset = upload.asset
    assert asset is not None
    before = files_below(storage)
    assert not asset_orphan(lab_id=asset.lab_id, sha256=asset.sha256)
    assert asset_purge(lab_id=asset.lab_id, sha256=asset.sha256) == 0
    assert files_below(storage) == before


def test_bytes_without_rows_are_deleted_at_once(
    case: Case, annotator: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise IntegrityError("no")

    monkeypatch.setattr(Upload, "save", broken)
    with pytest.raises(IntegrityError):
        upload_receive(case=case, file=io.BytesIO(picture()), filename="a.png", user=annotator)
    assert files_below(storage) == []
    assert not Asset.objects.exists()


def test_the_command_lists_restores_and_purges(deleted: Asset, storage: Path) -> None:
    output = io.StringIO()
    call_command("archive_orphans", "list", stdout=output)
    assert deleted.sha256 in output.getvalue()
    with pytest.raises(CommandError, match="files"):
        call_command("archive_orphans", "purge", stdout=output)
    call_command("archive_orphans", "restore", deleted.sha256[:8], stdout=output)
    assert "restored: 1 of 1" in output.getvalue()
    assert asset_orphan(lab_id=deleted.lab_id, sha256=deleted.sha256)
    call_command("archive_orphans", "purge", "--yes", stdout=output)
    assert "purged: 1 of 1" in output.getvalue()
    assert not [name for name in files_below(storage) if deleted.sha256 in name]
