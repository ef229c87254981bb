"""A large import is taken back by a job: part by part, once, whatever happens to its worker."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from portal.annotations.models import Roi, RoiImport, RoiRevision
from portal.annotations.services import exchange, imports, reading
from portal.annotations.services.exchange import ImportChoices, roi_import
from portal.annotations.services.imports import roi_import_undo, roi_import_undo_start
from portal.annotations.services.rois import roi_update
from portal.annotations.services.staged import roi_import_start
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, ForbiddenError
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_cancel, job_retry
from portal.jobs.worker.runner import job_run
from portal.labs.models import User
from tests.portal.annotations.staging import document, run, stage
from tests.portal.annotations.support import box, collection, feature

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten are many."""
    monkeypatch.setattr(imports, "AT_ONCE", 9)
    monkeypatch.setattr(imports, "CHUNK", 3)


def brought(canvas: Canvas, user: User, count: int = 10) -> RoiImport:
    features = [feature(box(n, 0, n + 9, 9), name=f"n{n}") for n in range(count)]
    report = roi_import(canvas=canvas, user=user, document=collection(*features))
    return RoiImport.objects.get(pk=report.import_id)


def undo_requested(row: RoiImport, user: User) -> RoiImport:
    assert roi_import_undo_start(roi_import=row, user=user) is None
    return row


def is_taken_back(row: RoiImport, *, removed: int = 10, stored: int = 0) -> bool:
    row.refresh_from_db()
    deleted = RoiRevision.objects.filter(action="delete")
    assert row.undone == {"removed": removed, "reverted": 0, "skipped": stored}
    assert (deleted.count(), Roi.objects.live().count()) == (removed, stored)
    return row.undone_at is not None and row.stage == "imported"


def test_a_small_one_is_taken_back_at_once_and_a_large_one_by_a_job(
    canvas: Canvas, annotator: User
) -> None:
    small = roi_import_undo_start(roi_import=brought(canvas, annotator, 9), user=annotator)
    assert (
        small is not None and small.removed == 9 and not Job.objects.filter(kind=imports.UNDO_KIND)
    )
    row = undo_requested(brought(canvas, annotator, 10), annotator)
    assert (row.stage, Roi.objects.live().count()) == ("undoing", 10)
    row = run(row)
    assert row.undone == {"removed": 10, "reverted": 0, "skipped": 0}
    assert row.undone_at and row.stage == "imported" and not Roi.objects.live().exists()
    job = Job.objects.get(pk=row.job_id)
    assert (job.state, job.result) == ("succeeded", row.undone)
    assert (job.progress_done, job.progress_total) == (10, 10)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("dies_at", [1, 2, 4])
def test_a_killed_worker_undoes_nothing_twice(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    row = undo_requested(brought(canvas, annotator), annotator)
    save, calls = imports.rois_save, []

    def dies(*arguments: Any) -> None:
        calls.append(1)
        save(*arguments)
        if len(calls) == dies_at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(imports, "rois_save", dies)
        with pytest.raises(KeyboardInterrupt):
            job_run(row.job_id)  # type: ignore[arg-type]
    assert Roi.objects.live().count() == 10 - 3 * (dies_at - 1)
    Job.objects.filter(pk=row.job_id).update(state=JobState.QUEUED, lease_token=None)
    assert is_taken_back(run(row))


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_undo_resumes_on_the_next_request(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = undo_requested(brought(canvas, annotator), annotator)
    save = imports.rois_save

    def cancels(*arguments: Any) -> None:
        save(*arguments)
        if Roi.objects.live().count() == 4:
            Job.objects.filter(pk=row.job_id).update(cancel_requested=True)

    with monkeypatch.context() as patch:
        patch.setattr(imports, "rois_save", cancels)
        row = run(row)
    assert Job.objects.get(pk=row.job_id).state == "cancelled"
    assert (row.stage, row.undone_at, Roi.objects.live().count()) == ("undoing", None, 4)
    stored = Roi.objects.select_related("canvas").live().first()
    assert stored is not None
    roi_update(roi=stored, user=annotator, expected_version=1, changes={"name": "mine"})
    with monkeypatch.context() as patch:
        patch.setattr(imports, "AT_ONCE", 100)
        undone = roi_import_undo_start(roi_import=row, user=annotator)
    assert undone is not None and undone.removed == 9
    assert is_taken_back(row, removed=9, stored=1)


@pytest.mark.django_db(transaction=True)
def test_an_undo_yields_and_resumes(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = undo_requested(brought(canvas, annotator), annotator)
    turns: list[bool] = []

    def must(*_: Any, **__: Any) -> bool:
        turns.append(True)
        return len(turns) in {1, 3}

    monkeypatch.setattr("portal.jobs.claims.must_yield", must)
    left = []
    while Job.objects.get(pk=row.job_id).state == "queued":
        row = run(row)
        left.append(Roi.objects.live().count())
    assert left == [7, 1, 0] and is_taken_back(row)


def test_two_requests_share_one_job(canvas: Canvas, annotator: User, viewer: User) -> None:
    row = undo_requested(brought(canvas, annotator), annotator)
    again = RoiImport.objects.get(pk=row.pk)
    assert roi_import_undo_start(roi_import=again, user=annotator) is None
    assert again.job_id == row.job_id
    assert Job.objects.filter(kind=imports.UNDO_KIND).count() == 1
    with pytest.raises(ConflictError, match="being undone"):
        roi_import_undo(roi_import=again, user=annotator)
    with pytest.raises(ForbiddenError):
        roi_import_undo_start(roi_import=again, user=viewer)
    assert is_taken_back(run(row))
    done = roi_import_undo_start(roi_import=row, user=annotator)
    assert done is not None and done.removed == 0  # nothing is left to do


def test_two_concurrent_undos_count_nothing_twice(canvas: Canvas, annotator: User) -> None:
    row = brought(canvas, annotator)
    mine, theirs = (RoiImport.objects.get(pk=row.pk) for _ in range(2))
    work = imports.UndoWork(
        progress=lambda done, total: (
            done == 3 and imports._undo(theirs, annotator, imports.UndoWork())
        )
    )
    with pytest.raises(ConflictError, match="being undone"):
        imports._undo(mine, annotator, work)
    row.refresh_from_db()
    assert row.undone == {"removed": 10, "reverted": 0, "skipped": 0}


def test_the_requester_may_be_deleted_before_the_undo_ends(canvas: Canvas, annotator: User) -> None:
    row = undo_requested(brought(canvas, annotator), annotator)
    job = Job.objects.get(pk=row.job_id)
    Job.objects.filter(pk=job.pk).update(args=job.args | {"user_id": str(uuid.uuid4())})
    assert is_taken_back(run(row))


def test_a_previewed_document_has_nothing_to_undo(
    canvas: Canvas, annotator: User, storage: Path
) -> None:
    row = run(stage(canvas, annotator, document(2), is_preview=True))
    undone = roi_import_undo_start(roi_import=row, user=annotator)
    assert undone is not None and undone.removed == 0
    row.refresh_from_db()
    assert row.undone_at is None  # it can be imported still
    row = run(roi_import_start(row=row, user=annotator, choices=ImportChoices(), is_preview=False))
    assert Roi.objects.live().count() == 2


@pytest.mark.django_db(transaction=True)
def test_the_job_of_an_undone_import_does_not_resume(
    canvas: Canvas, annotator: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled job is tried again from the list of jobs, which knows nothing of the undo."""
    monkeypatch.setattr(reading, "CHUNK", 10)
    row = stage(canvas, annotator, document(14))
    insert = exchange.rois_insert

    def cancels(**more: Any) -> None:
        insert(**more)
        Job.objects.filter(pk=row.job_id).update(cancel_requested=True)

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "rois_insert", cancels)
        row = run(row)
    first = Job.objects.get(pk=row.job_id)
    assert (first.state, Roi.objects.live().count()) == ("cancelled", 10)
    undo_requested(row, annotator)
    again = job_retry(job=first, user=annotator)
    job_run(again.pk)
    again.refresh_from_db()
    assert (again.state, again.error_code) == ("failed", "import-ended")
    assert Roi.objects.live().count() == 10
    with pytest.raises(ConflictError, match="undone"):
        imports.import_fields_update(row)  # of one that was under way
    assert is_taken_back(run(row))


def test_over_rest_a_large_one_is_followed_by_its_job(
    canvas: Canvas, annotator: User, stranger: User, api_as: Any
) -> None:
    row, api = brought(canvas, annotator), api_as(annotator)
    url = f"/api/v1/roi-imports/{row.pk}/"
    assert api_as(stranger).post(f"{url}undo/").status_code == 404
    sent = api.post(f"{url}undo/")
    assert (sent.status_code, sent.json()["stage"], sent.json()["undone"]) == (202, "undoing", None)
    assert sent["Location"] == f"/api/v1/jobs/{sent.json()['job']['id']}/"
    job_run(uuid.UUID(sent.json()["job"]["id"]))
    seen = api.get(url).json()
    assert (seen["stage"], seen["undone"]["removed"], seen["job"]["state"]) == (
        "imported",
        10,
        "succeeded",
    )
    assert seen["undone_at"]


def test_a_queued_undo_can_be_cancelled_and_requested_again(
    canvas: Canvas, annotator: User
) -> None:
    row = undo_requested(brought(canvas, annotator), annotator)
    job_cancel(job=Job.objects.get(pk=row.job_id), user=annotator)
    assert is_taken_back(run(undo_requested(row, annotator)))
