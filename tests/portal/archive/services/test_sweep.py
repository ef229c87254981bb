"""What the sweep deletes, and what it leaves."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command

from portal.archive import services
from portal.archive.models import Case, Slide, Upload
from portal.archive.services import storage_sweep
from portal.labs.models import User

pytestmark = pytest.mark.django_db
AT_ONCE = timedelta(seconds=-1)


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def litter(storage: Path) -> None:
    for name in ("incoming/left", "scratch/job/half", "assets/lab/ab/abc"):
        (storage / name).parent.mkdir(parents=True, exist_ok=True)
        (storage / name).write_bytes(b"x")


def test_what_crashes_leave_goes_and_what_is_used_stays(still: Slide, storage: Path) -> None:
    used = files_below(storage)
    litter(storage)
    swept = storage_sweep(older_than=AT_ONCE, cache_bytes=10**9)
    assert (swept.transfers, swept.scratch, swept.orphans, swept.cached) == (1, 1, 1, 0)
    assert files_below(storage) == used


def test_what_is_young_stays(case: Case, annotator: User, storage: Path) -> None:
    litter(storage)
    services.upload_begin(case=case, filename="a", size_bytes=5, user=annotator)
    before = files_below(storage)
    storage_sweep(older_than=timedelta(hours=1), cache_bytes=0)
    assert files_below(storage) == before


def test_an_abandoned_transfer_goes_with_its_row(
    case: Case, annotator: User, storage: Path
) -> None:
    services.upload_begin(case=case, filename="a", size_bytes=5, user=annotator)
    storage_sweep(older_than=AT_ONCE, cache_bytes=0)
    assert not Upload.objects.exists()
    assert files_below(storage) == set()


def test_the_cache_is_cut_to_its_limit(storage: Path, db: None) -> None:
    for name in "abc":
        path = storage / "cache" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 10)
    assert storage_sweep(older_than=AT_ONCE, cache_bytes=20).cached == 1


def test_the_command_says_what_went(storage: Path, db: None) -> None:
    said = io.StringIO()
    call_command("archive_sweep", stdout=said)
    assert said.getvalue().startswith("deleted: 0 transfers")
