"""Files that the sweep deletes and keeps, and cases in which it refuses to run."""

from __future__ import annotations

import io
import json
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from portal.archive.models import Asset, Case, Slide, StorageIdentity, Upload
from portal.archive.services.identity import identity_adopt, identity_problem
from portal.archive.services.sweep import max_orphans, storage_sweep
from portal.archive.services.transfers.arriving import upload_begin
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db
AT_ONCE = timedelta(seconds=-1)


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def litter(storage: Path) -> None:
    for name in ("incoming/left", "scratch/job/half", "assets/lab/ab/abc"):
        (storage / name).parent.mkdir(parents=True, exist_ok=True)
        (storage / name).write_bytes(b"x")


def originals(storage: Path, lab: Lab, count: int, *, named: int = 0) -> list[str]:
    """Files as uploads leave them, the first ``named`` of them with a row; returns their hashes."""
    hashes = [f"{number:064x}" for number in range(count)]
    for number, sha256 in enumerate(hashes):
        path = storage / "assets" / str(lab.pk) / sha256[:2] / sha256
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        if number < named:
            Asset.objects.create(lab=lab, sha256=sha256, size_bytes=1, media_type="image/*")
    return hashes


def test_files_of_crashes_are_removed_and_used_files_remain(still: Slide, storage: Path) -> None:
    used = files_below(storage)
    litter(storage)
    swept = storage_sweep(older_than=AT_ONCE, cache_bytes=10**9)
    assert (swept.transfers, swept.scratch, swept.orphans, swept.cached) == (1, 1, 1, 0)
    left = files_below(storage) - used
    assert [name.partition("/assets/")[2] for name in left] == ["lab/ab/abc"]
    assert all(name.startswith("orphans/") for name in left)


def test_young_files_remain(case: Case, annotator: User, storage: Path) -> None:
    litter(storage)
    upload_begin(case=case, filename="a", size_bytes=5, user=annotator)
    before = files_below(storage)
    storage_sweep(older_than=timedelta(hours=1), cache_bytes=0)
    assert files_below(storage) == before


def test_an_abandoned_transfer_is_deleted_with_its_row(
    case: Case, annotator: User, storage: Path
) -> None:
    upload_begin(case=case, filename="a", size_bytes=5, user=annotator)
    storage_sweep(older_than=AT_ONCE, cache_bytes=0)
    assert not Upload.objects.exists()
    assert files_below(storage) == set()


def test_the_cache_is_cut_to_its_limit(storage: Path, db: None) -> None:
    for name in "abc":
        path = storage / "cache" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 10)
    assert storage_sweep(older_than=AT_ONCE, cache_bytes=20).cached == 1


@pytest.mark.parametrize("count", [1, 5, 300])
def test_an_empty_database_costs_no_file(storage: Path, lab: Lab, count: int) -> None:
    originals(storage, lab, count)
    before = files_below(storage)
    swept = storage_sweep(older_than=AT_ONCE)
    assert (swept.orphans, files_below(storage)) == (0, before)
    assert f"has no files at all, but the storage holds {count}" in swept.refused


def test_too_many_originals_without_a_row_are_not_removed(storage: Path, lab: Lab) -> None:
    originals(storage, lab, 300, named=296)
    before = files_below(storage)
    swept = storage_sweep(older_than=AT_ONCE)
    assert "4 of 300 originals have no row in the database; at most 3 are moved" in swept.refused
    assert files_below(storage) == before
    swept = storage_sweep(older_than=AT_ONCE, many_orphans=True)
    assert (swept.orphans, swept.refused) == (4, "")


@pytest.mark.parametrize(
    ("files", "at_once"), [(1, 1), (99, 1), (300, 3), (2_000, 20), (50_000, 20)]
)
def test_one_percent_and_at_most_twenty_orphans_are_moved(files: int, at_once: int) -> None:
    assert max_orphans(files) == at_once


def test_files_of_another_database_are_not_removed(
    storage: Path, lab: Lab, case: Case, annotator: User, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        identity_adopt()
    originals(storage, lab, 200, named=199)
    (storage / "incoming").mkdir()
    (storage / "incoming" / str(uuid.uuid4())).write_bytes(b"x")
    before = files_below(storage)
    assert storage_sweep(older_than=AT_ONCE, dry_run=True).orphans == 1

    StorageIdentity.objects.all().delete()  # a new database
    swept = storage_sweep(older_than=AT_ONCE, many_orphans=True)
    assert "this database is a new one" in swept.refused
    StorageIdentity.objects.create()  # another one
    with pytest.raises(CommandError, match=r"belong to database .*; this is database"):
        call_command("archive_sweep", "--many-orphans", older_than_hours=-1, stdout=io.StringIO())
    assert files_below(storage) == before

    with django_capture_on_commit_callbacks(execute=True):
        identity_adopt()
    assert storage_sweep(older_than=AT_ONCE).orphans == 1


def test_an_upload_marks_the_storage_with_its_database(
    case: Case, receive: Any, storage: Path, django_capture_on_commit_callbacks: Any
) -> None:
    from tests.portal.archive.support import picture

    with django_capture_on_commit_callbacks(execute=True):
        receive(case, picture(), "a.png")
    written = json.loads((storage / "identity.json").read_text())
    assert written["database"] == str(StorageIdentity.objects.get().pk)
    assert identity_problem() == ""
    (storage / "identity.json").write_text("{")
    assert "cannot be read" in identity_problem()


def test_a_dry_run_changes_nothing(storage: Path, lab: Lab) -> None:
    litter(storage)
    originals(storage, lab, 10, named=10)
    before = files_below(storage)
    swept = storage_sweep(older_than=AT_ONCE, cache_bytes=0, dry_run=True)
    assert (swept.transfers, swept.scratch, swept.orphans) == (1, 1, 1)
    assert files_below(storage) == before


def test_referenced_files_return_from_the_orphan_folder(storage: Path, lab: Lab) -> None:
    hashes = originals(storage, lab, 10, named=9)
    before = files_below(storage)
    assert storage_sweep(older_than=AT_ONCE).orphans == 1
    Asset.objects.create(lab=lab, sha256=hashes[-1], size_bytes=1, media_type="image/*")
    assert storage_sweep(older_than=AT_ONCE).restored == 1
    assert files_below(storage) == before


def test_the_orphan_folder_is_emptied_after_its_days_and_not_before(
    storage: Path, lab: Lab, settings: Any
) -> None:
    settings.TESSERA_ORPHAN_DAYS = 30
    hashes = originals(storage, lab, 10, named=9)
    storage_sweep(older_than=AT_ONCE)
    today = next((storage / "orphans").iterdir())
    today.rename(today.with_name("2020-01-01"))
    assert storage_sweep(older_than=AT_ONCE, dry_run=True).expired == 1
    assert storage_sweep(older_than=AT_ONCE).expired == 1
    assert not any(hashes[-1] in name for name in files_below(storage))
    originals(storage, lab, 10)
    storage_sweep(older_than=AT_ONCE)
    assert storage_sweep(older_than=AT_ONCE).expired == 0


def test_the_command_reports_the_removed_files(storage: Path, db: None) -> None:
    output = io.StringIO()
    call_command("archive_sweep", stdout=output)
    assert output.getvalue().startswith("deleted: 0 transfers")
