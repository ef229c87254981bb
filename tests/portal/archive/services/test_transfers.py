"""Files in pieces: resumed, damaged, joined, checked by a job, discarded."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from portal.archive.models import Asset, Case, Slide, Upload
from portal.archive.services.cases import case_create, case_delete
from portal.archive.services.quotas import quota_used_bytes
from portal.archive.services.sweep import storage_sweep
from portal.archive.services.transfers.arriving import (
    upload_append,
    upload_begin,
    upload_discard,
    upload_join,
)
from portal.archive.services.transfers.finishing import upload_finish
from portal.archive.services.transfers.writing import Checksum, ChecksumError, UploadBusyError
from portal.archive.storage.files import incoming_path
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.jobs import claims
from portal.jobs.models import Job, JobState
from portal.jobs.worker.reaper import reap
from portal.labs.models import User
from tests.portal.archive.support import files_below, picture, run_job

pytestmark = pytest.mark.django_db
CONTENT = picture()


def _begin(case: Case, user: User, **given: Any) -> Upload:
    values = {"filename": "a.png", "size_bytes": len(CONTENT)} | given
    return upload_begin(case=case, user=user, **values)


def _finish(upload: Upload) -> Job:
    job = Job.objects.get(kind="upload_finish", target_id=upload.pk)
    run_job(job)
    job.refresh_from_db()
    upload.refresh_from_db()
    return job


def test_a_transfer_resumes_where_it_stopped_and_becomes_a_slide(
    case: Case, annotator: User, storage: Path
) -> None:
    upload = _begin(case, annotator, name="Left lobe", sha256=hashlib.sha256(CONTENT).hexdigest())
    upload_append(upload=upload, offset=0, chunks=[CONTENT[:100], CONTENT[100:150]], user=annotator)
    with pytest.raises(ConflictError) as wrong:
        upload_append(upload=upload, offset=100, chunks=[b""], user=annotator)
    assert wrong.value.details == {"offset": 150}

    def broken() -> Iterator[bytes]:
        yield CONTENT[150:180]
        raise ConnectionError

    with pytest.raises(ConnectionError):
        upload_append(upload=upload, offset=150, chunks=broken(), user=annotator)
    assert upload.received_bytes == 180
    assert not Job.objects.exists()
    upload_append(upload=upload, offset=180, chunks=[CONTENT[180:]], user=annotator)
    assert upload.state == "checking"
    with pytest.raises(ConflictError):  # nothing can be added, or taken away, any more
        upload_append(upload=upload, offset=len(CONTENT), chunks=[b"x"], user=annotator)
    with pytest.raises(ConflictError, match="has arrived"):
        upload_discard(upload=upload)
    assert _finish(upload).state == JobState.SUCCEEDED
    slide = Slide.objects.get()
    assert (upload.state, slide.name, slide.asset) == ("stored", "Left lobe", upload.asset)
    assert files_below(storage) == [
        f"assets/{case.lab_id}/{slide.asset.sha256[:2]}/{slide.asset.sha256}"
    ]
    assert Job.objects.filter(kind="slide_ingest").count() == 1


def test_a_job_that_runs_twice_stores_once(
    case: Case, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies after the bytes were placed and before the rows were committed."""
    from portal.archive.storage import files

    upload = _begin(case, annotator)
    upload_append(upload=upload, offset=0, chunks=[CONTENT], user=annotator)
    path, kind = upload_finish(upload=upload, progress=lambda *_: None)
    assert path is not None
    files.the_store().put(path, files.asset_name(case.lab_id, upload.sha256))
    assert not path.exists()
    assert (kind, _finish(upload).state) == ("still", JobState.SUCCEEDED)
    assert (Slide.objects.count(), Asset.objects.count()) == (1, 1)


def test_bytes_missing_in_the_folder_are_requested_again(case: Case, annotator: User) -> None:
    upload = _begin(case, annotator)
    upload_append(upload=upload, offset=0, chunks=[CONTENT[:50]], user=annotator)
    incoming_path(str(upload.pk)).unlink()
    with pytest.raises(ConflictError) as wrong:
        upload_append(upload=upload, offset=50, chunks=[CONTENT[50:]], user=annotator)
    assert wrong.value.details == {"offset": 0}


def test_the_last_byte_and_the_job_are_noted_in_one_step(
    case: Case, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a client would hear that all has arrived, and nobody would ever check it."""
    from portal.archive.services.transfers import arriving

    def die(**_: Any) -> None:
        raise ConnectionError

    upload = _begin(case, annotator)
    with monkeypatch.context() as patch, pytest.raises(ConnectionError):
        patch.setattr(arriving, "job_submit", die)
        upload_append(upload=upload, offset=0, chunks=[CONTENT], user=annotator)
    upload.refresh_from_db()
    assert (upload.received_bytes, upload.state) == (0, "receiving")
    upload_append(upload=upload, offset=0, chunks=[CONTENT], user=annotator)
    assert _finish(upload).state == JobState.SUCCEEDED


def test_two_requests_do_not_write_to_one_transfer(case: Case, annotator: User) -> None:
    upload = _begin(case, annotator)
    with incoming_path(str(upload.pk)).open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UploadBusyError):
            upload_append(upload=upload, offset=0, chunks=[b"x"], user=annotator)
    upload_append(upload=upload, offset=0, chunks=[b"x"], user=annotator)


def test_a_damaged_piece_is_discarded(case: Case, annotator: User) -> None:
    upload = _begin(case, annotator)
    digest = hashlib.sha1(b"right", usedforsecurity=False).digest()
    checksum = Checksum("sha1", digest)
    with pytest.raises(ChecksumError):
        upload_append(upload=upload, offset=0, chunks=[b"wrong"], checksum=checksum, user=annotator)
    assert (upload.received_bytes, incoming_path(str(upload.pk)).stat().st_size) == (0, 0)
    upload_append(
        upload=upload, offset=0, chunks=[b"ri", b"ght"], checksum=checksum, user=annotator
    )
    assert upload.received_bytes == 5


def test_excess_bytes_are_refused_and_earlier_bytes_remain(case: Case, annotator: User) -> None:
    upload = _begin(case, annotator, size_bytes=3)
    with pytest.raises(InvalidInputError, match="3 bytes"):
        upload_append(upload=upload, offset=0, chunks=[b"ab", b"cd"], user=annotator)
    assert upload.received_bytes == 2


@pytest.mark.parametrize(
    ("sent", "sha256", "reason"),
    [(CONTENT, "0" * 64, "arrived damaged"), (b"no picture", "", "the file is a text file")],
)
def test_a_refused_file_reports_the_reason_and_is_deleted(
    case: Case,
    annotator: User,
    storage: Path,
    sent: bytes,
    sha256: str,
    reason: str,
    django_capture_on_commit_callbacks: Any,
) -> None:
    upload = _begin(case, annotator, size_bytes=len(sent), sha256=sha256)
    upload_append(upload=upload, offset=0, chunks=[sent], user=annotator)
    with django_capture_on_commit_callbacks(execute=True):
        assert _finish(upload).state == JobState.FAILED
    assert upload.state == "refused"
    assert reason in upload.error_message
    assert files_below(storage) == []
    assert quota_used_bytes(case.lab_id) == 0


def test_parts_are_joined_in_the_order_that_is_named(
    case: Case, annotator: User, storage: Path
) -> None:
    cut = len(CONTENT) // 3
    parts = []
    for piece in (CONTENT[cut:], CONTENT[:cut]):
        part = _begin(case, annotator, size_bytes=len(piece), is_part=True)
        upload_append(upload=part, offset=0, chunks=[piece], user=annotator)
        parts.insert(0, part)
    assert not Job.objects.exists()
    used = quota_used_bytes(case.lab_id)
    joined = upload_join(parts=parts, filename="a.png", user=annotator)
    assert quota_used_bytes(case.lab_id) == used == len(CONTENT)
    with pytest.raises(ConflictError, match="Part 1"):
        upload_join(parts=parts, filename="b.png", user=annotator)
    assert _finish(joined).state == JobState.SUCCEEDED
    assert Asset.objects.get().sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert (Upload.objects.count(), len(files_below(storage))) == (1, 1)


def test_only_complete_parts_are_joined(case: Case, annotator: User) -> None:
    part, other = (_begin(case, annotator, is_part=True) for _ in range(2))
    joined = _begin(case, annotator)
    for wrong in ([], [part, part], [joined]):
        with pytest.raises(InvalidInputError):
            upload_join(parts=wrong, filename="a", user=annotator)
    with pytest.raises(ConflictError):
        upload_join(parts=[part, other], filename="a", user=annotator)
    assert Upload.objects.count() == 3  # nothing of the attempt is left


@pytest.mark.parametrize("sha256", ["a" * 63, "a" * 65, "g" * 64])
def test_a_malformed_sha256_is_refused_of_a_file_and_of_one_that_is_joined(
    case: Case, annotator: User, sha256: str
) -> None:
    part = _begin(case, annotator, size_bytes=len(CONTENT), is_part=True)
    upload_append(upload=part, offset=0, chunks=[CONTENT], user=annotator)
    with pytest.raises(InvalidInputError, match="sha256"):
        _begin(case, annotator, sha256=sha256)
    with pytest.raises(InvalidInputError, match="sha256"):
        upload_join(parts=[part], filename="a.png", user=annotator, sha256=sha256)
    assert Upload.objects.get() == part
    part.refresh_from_db()
    assert part.joined_upload_id is None


def test_a_file_the_lab_owns_is_not_sent_again(case: Case, annotator: User, storage: Path) -> None:
    first = _begin(case, annotator)
    upload_append(upload=first, offset=0, chunks=[CONTENT], user=annotator)
    _finish(first)
    other = case_create(lab=case.lab, user=annotator, accession="2")
    known = _begin(other, annotator, sha256=hashlib.sha256(CONTENT).hexdigest())
    assert (known.received_bytes, known.state) == (len(CONTENT), "checking")
    assert _finish(known).state == JobState.SUCCEEDED
    assert (Slide.objects.filter(case=other).count(), len(files_below(storage))) == (1, 1)


def test_files_of_another_lab_are_not_revealed(
    case: Case, annotator: User, foreign_case: Case, stranger: User
) -> None:
    first = _begin(case, annotator)
    upload_append(upload=first, offset=0, chunks=[CONTENT], user=annotator)
    _finish(first)
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    assert _begin(foreign_case, stranger, sha256=sha256).received_bytes == 0


@pytest.mark.parametrize("wrong", [{"size_bytes": 0}, {"sha256": "x"}])
def test_invalid_announcements_are_refused(
    case: Case, annotator: User, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError):
        _begin(case, annotator, **wrong)
    assert not Upload.objects.exists()


def test_a_concurrently_deleted_case_gets_no_slide(case: Case, annotator: User) -> None:
    upload = _begin(case, annotator)
    upload_append(upload=upload, offset=0, chunks=[CONTENT], user=annotator)
    case_delete(case=case, user=annotator)
    assert "the case has been deleted" in _finish(upload).error_message
    assert upload.state == "refused"


def test_the_sweep_deletes_stalled_transfers_except_during_verification(
    case: Case, annotator: User, storage: Path
) -> None:
    still, checked = _begin(case, annotator), _begin(case, annotator)
    upload_append(upload=checked, offset=0, chunks=[CONTENT], user=annotator)
    Upload.objects.update(updated_at=timezone.now() - timedelta(days=3))
    storage_sweep()
    assert not Upload.objects.filter(pk=still.pk).exists()
    assert _finish(checked).state == JobState.SUCCEEDED


def test_discarding_a_transfer_deletes_its_bytes(
    case: Case, annotator: User, storage: Path
) -> None:
    from portal.archive.selectors.uploads import upload_get

    upload = _begin(case, annotator)
    upload_append(upload=upload, offset=0, chunks=[b"abc"], user=annotator)
    pk = upload.pk
    upload_discard(upload=upload, user=annotator)
    assert files_below(storage) == []
    with pytest.raises(NotFoundError):
        upload_get(user=annotator, upload_id=pk)


def _workers_lost() -> None:
    """Whoever had the newest job was killed, each time it was tried."""
    job = Job.objects.filter(kind="upload_finish", state=JobState.QUEUED).get()
    claims.claim(job.pk, worker="gone")
    past = timezone.now() - timedelta(seconds=1)
    Job.objects.filter(pk=job.pk).update(lease_until=past, attempts=job.max_attempts)
    reap()
    job.refresh_from_db()
    assert job.error_code == "worker-lost"


def test_a_file_that_arrived_outlives_the_workers_that_were_to_check_it(
    case: Case, annotator: User, storage: Path
) -> None:
    stored, lost = _begin(case, annotator), _begin(case, annotator)
    upload_append(upload=stored, offset=0, chunks=[CONTENT], user=annotator)
    _workers_lost()
    stored.refresh_from_db()
    assert stored.state == "checking", "nothing is wrong with the file"
    run_job(Job.objects.get(kind="upload_finish", state=JobState.QUEUED))
    stored.refresh_from_db()
    assert stored.state == "stored"
    upload_append(upload=lost, offset=0, chunks=[CONTENT], user=annotator)
    for _ in range(3):
        _workers_lost()
    lost.refresh_from_db()
    assert (lost.state, lost.error_code) == ("refused", "worker-lost"), "not tried for ever"
    assert not Job.objects.filter(kind="upload_finish", state=JobState.QUEUED).exists()
