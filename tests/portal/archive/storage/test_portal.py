"""The portal with its originals in a bucket: from upload to backup, and while it is away."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from portal.archive.models import Asset, Case, Slide, Upload
from portal.archive.services.assets import asset_purge, asset_restore
from portal.archive.services.identity import identity_adopt
from portal.archive.services.items import item_delete
from portal.archive.services.sweep import storage_sweep
from portal.archive.services.trash import trash_purge
from portal.archive.storage.files import (
    ASSETS,
    IDENTITY,
    asset_name,
    asset_path,
    folder_drop,
    incoming_path,
    resolve,
    the_store,
)
from portal.archive.storage.orphans import orphan_list, orphan_put
from portal.archive.storage.s3_store import S3Settings, bucket_make
from portal.archive.storage.store import StoreAwayError
from portal.archive.tiles.cache import SOURCES
from portal.backups.services.backup import backup_create, backup_verify
from portal.backups.services.restore import restore
from portal.erasure.services.erasures import erasure_begin, erasure_run
from portal.jobs.models import Job
from portal.labs.models import User
from portal.operations.doctor import machine
from tests.portal.archive.storage.conftest import Door
from tests.portal.archive.support import picture, run_job

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def in_bucket(bucket: S3Settings, settings: Any) -> None:
    """The portal keeps its originals there."""
    settings.TESSERA_S3 = asdict(bucket)


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).parts[0] for path in folder.rglob("*") if path.is_file()}


def test_a_slide_is_read_from_the_bucket_without_its_local_copy(
    in_bucket: None, slide: Slide, storage: Path, door: Door
) -> None:
    assert "assets" not in files_below(storage)
    canvas = slide.canvas
    assert canvas is not None and canvas.pixels_path.startswith("assets/")
    folder_drop(storage / "fetched")
    SOURCES.clear()
    before = len(door.downloads)
    source = SOURCES.get(canvas.pixels_path)
    assert source is SOURCES.get(canvas.pixels_path)
    assert len(door.downloads) == before + 1
    assert "fetched" in files_below(storage)


def test_a_deleted_original_waits_in_the_bucket_and_comes_back(
    in_bucket: None, still: Slide, annotator: User, django_capture_on_commit_callbacks: Any
) -> None:
    lab_id, sha256 = still.asset.lab_id, still.asset.sha256
    name = asset_name(lab_id, sha256)
    with django_capture_on_commit_callbacks(execute=True):
        trash_purge(entry=item_delete(item=still, user=annotator), user=None)
    assert the_store().stat(name) is None
    assert [item.home for item in orphan_list()] == [name]
    assert asset_restore(lab_id=lab_id, sha256=sha256)
    assert resolve(name).read_bytes() == picture()
    assert asset_purge(lab_id=lab_id, sha256=sha256) == 1
    with pytest.raises(FileNotFoundError):
        resolve(name)


def test_an_upload_during_an_outage_of_the_bucket_is_rolled_back_and_repeatable(
    in_bucket: None, bucket: S3Settings, case: Case, receive: Any, settings: Any, storage: Path
) -> None:
    settings.TESSERA_S3 = asdict(bucket) | {"endpoint": "http://127.0.0.1:9"}
    with pytest.raises(StoreAwayError):
        receive(case, picture(), "a.png")
    assert not (Asset.objects.exists() or Upload.objects.exists() or Slide.objects.exists())
    assert files_below(storage) <= {"incoming"} and not list((storage / "incoming").iterdir())
    settings.TESSERA_S3 = asdict(bucket)
    item = receive(case, picture(), "a.png").item
    assert asset_path(case.lab_id, item.asset.sha256).read_bytes() == picture()


def test_work_on_an_original_that_cannot_be_fetched_is_tried_again(
    in_bucket: None,
    bucket: S3Settings,
    case: Case,
    receive: Any,
    settings: Any,
    storage: Path,
    quick: None,
) -> None:
    received = receive(case, picture(), "a.png")
    folder_drop(storage / "fetched")
    settings.TESSERA_S3 = asdict(bucket) | {"endpoint": "http://127.0.0.1:9"}
    job = run_job(received.job)
    assert job.state == "queued" and job.attempts == 1, (job.state, job.error_message)
    settings.TESSERA_S3 = asdict(bucket)
    Job.objects.update(not_before=None)
    assert run_job(received.job).state == "succeeded"


def test_the_sweep_of_a_bucket_respects_its_owner(
    in_bucket: None, still: Slide, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        identity_adopt()
    before = storage_sweep(dry_run=True)
    assert (before.orphans, before.refused) == (0, "")
    names = [file.name for file in the_store().files(ASSETS)]
    assert names == [asset_name(still.lab_id, still.asset.sha256)]
    the_store().write(IDENTITY, b'{"database": "another"}')
    assert "database another" in storage_sweep(dry_run=True).refused


@pytest.mark.django_db(transaction=True)
def test_a_backup_contains_the_objects_of_the_bucket(
    in_bucket: None, still: Slide, tmp_path: Path
) -> None:
    MigrationRecorder(connection).ensure_schema()  # the tests' database is made without migrations
    made = backup_create(destination=tmp_path / "backups").manifest
    assert made.missing == []
    assert backup_verify(destination=tmp_path / "backups").files == made.files
    held = tmp_path / "backups" / "objects"
    assert still.asset.sha256 in {path.name for path in held.rglob("*")}


@pytest.mark.django_db(transaction=True)
def test_a_backup_is_restored_into_another_bucket(
    in_bucket: None,
    still: Slide,
    bucket: S3Settings,
    settings: Any,
    tmp_path: Path,
) -> None:
    """After loss of the machine and its bucket, a backup restores files and identity."""
    MigrationRecorder(connection).ensure_schema()
    backup_create(destination=tmp_path / "backups")
    lost = asdict(bucket) | {"bucket": f"{bucket.bucket}-new"}
    settings.TESSERA_S3 = lost
    settings.TESSERA_STORAGE = tmp_path / "new machine"
    bucket_make(S3Settings(**lost))
    name = asset_name(still.lab_id, still.asset.sha256)
    assert the_store().stat(name) is None
    restore(source=tmp_path / "backups", overwrite=True)
    stored = the_store().stat(name)
    assert stored is not None and stored.size_bytes == len(picture())
    folder_drop(tmp_path / "new machine" / "fetched")
    assert resolve(name).read_bytes() == picture()
    assert the_store().stat(IDENTITY) is not None


@pytest.mark.django_db(transaction=True)
def test_an_erasure_deletes_the_objects_of_the_bucket(
    in_bucket: None, still: Slide, case: Case, manager: User
) -> None:
    name = asset_name(still.lab_id, still.asset.sha256)
    orphan_put(name)  # as if it had been deleted before, and uploaded again
    the_store().put(_received(incoming_path("again")), name)
    done = erasure_run(erasure_begin(lab=case.lab, cases=[case], user=manager, reason=""))
    assert done.state == "done" and done.certificate["verified"]["is_gone"]
    assert not [*the_store().files("assets"), *the_store().files("orphans")]


def _received(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture())
    return path


def test_the_doctor_and_the_command_try_the_bucket(
    in_bucket: None, bucket: S3Settings, settings: Any, storage: Path, capsys: Any
) -> None:
    assert [key.level for key in machine.objects()] == ["ok"]
    settings.TESSERA_S3 = asdict(bucket) | {"bucket": f"{bucket.bucket}-2"}
    (result,) = machine.objects()
    assert result.level == "error" and "NoSuchBucket" in result.message
    call_command("archive_bucket")
    assert f"{bucket.bucket}-2: created" in capsys.readouterr().out
    assert [key.level for key in machine.objects()] == ["ok"]
    settings.TESSERA_S3 = None
    assert machine.objects() == []
    with pytest.raises(CommandError, match="TESSERA_STORE=s3"):
        call_command("archive_bucket")
