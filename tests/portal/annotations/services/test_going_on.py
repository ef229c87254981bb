"""Imports that are killed, stopped, or give way, and go on: nothing lost, doubled or read twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portal.annotations.models import Roi, RoiRevision
from portal.annotations.services import reading
from portal.annotations.services.exchange import ImportChoices
from portal.annotations.services.imports import roi_import_undo
from portal.annotations.services.staged import import_folder, roi_import_start
from portal.archive.models import Canvas
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.labs.models import User
from tests.portal.annotations.staging import counts, document, run, stage, state
from tests.portal.annotations.support import collection

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("dies_at", [1, 3])
def test_a_killed_worker_loses_and_doubles_no_roi(
    canvas: Canvas,
    annotator: User,
    storage: Path,
    monkeypatch: pytest.MonkeyPatch,
    dies_at: int,
) -> None:
    monkeypatch.setattr(reading, "CHUNK", 4)
    row = stage(canvas, annotator, document(14))
    insert, calls = staged_insert(), []

    def dies(**more: Any) -> None:
        calls.append(len(more["rois"]))
        insert(**more)
        if len(calls) == dies_at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("portal.annotations.services.exchange.rois_insert", dies)
        with pytest.raises(KeyboardInterrupt):
            job_run(row.job_id)  # type: ignore[arg-type]
    row.refresh_from_db()
    assert (Roi.objects.count(), row.done) == (4 * (dies_at - 1), 4 * (dies_at - 1))
    Job.objects.filter(pk=row.job_id).update(state=JobState.QUEUED, lease_token=None)
    row = run(row)
    assert (state(row), counts(row)) == ("succeeded", (14, 0, 0, 0, 1))
    assert RoiRevision.objects.filter(roi_import=row).count() == Roi.objects.count() == 14
    table = (import_folder(row) / "report.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table] == ["feature", *map(str, range(1, 16))]


def staged_insert() -> Any:
    from portal.annotations.services import exchange

    return exchange.rois_insert


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_import_reports_its_progress_and_is_undone(
    canvas: Canvas, annotator: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK", 4)
    row = stage(canvas, annotator, document(14))
    insert = staged_insert()

    def cancels(**more: Any) -> None:
        insert(**more)
        if Roi.objects.count() == 8:
            Job.objects.filter(pk=row.job_id).update(cancel_requested=True)

    monkeypatch.setattr("portal.annotations.services.exchange.rois_insert", cancels)
    row = run(row)
    assert (state(row), row.stage) == ("cancelled", "importing")
    assert counts(row)[0] == row.done == Roi.objects.live().count() == 8
    assert roi_import_undo(roi_import=row, user=annotator).removed == 8
    assert not Roi.objects.live().exists()


def gives_way_at(monkeypatch: pytest.MonkeyPatch, *parts: int) -> list[bool]:
    requests: list[bool] = []

    def must(*_: Any, **__: Any) -> bool:
        requests.append(True)
        return len(requests) in parts

    monkeypatch.setattr("portal.jobs.claims.must_yield", must)
    return requests


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("expected", [True, False], ids=["with its progress", "without"])
def test_an_import_yields_and_resumes(
    canvas: Canvas,
    annotator: User,
    storage: Path,
    monkeypatch: pytest.MonkeyPatch,
    expected: bool,
) -> None:
    """Without its progress file it reads all again; nothing is written or counted twice."""
    monkeypatch.setattr(reading, "CHUNK", 4)
    features = json.loads(document(10))["features"]
    twice = json.dumps(collection(*features, features[1], {"type": "Odd"})).encode()
    row = stage(canvas, annotator, twice)
    gives_way_at(monkeypatch, 2)
    row = run(row)
    assert (state(row), row.done) == ("queued", 8)
    read: list[int] = []
    planned = reading._plan_feature

    def seen(run: Any, index: int, raw: object) -> Any:
        read.append(index)
        return planned(run, index, raw)

    monkeypatch.setattr(reading, "_plan_feature", seen)
    if expected:
        monkeypatch.delattr(reading, "_survey_features")
    else:
        (import_folder(row) / "import_progress").unlink()
    row = run(row)
    assert read == list(range(8 if expected else 0, 13))
    assert (state(row), counts(row)) == ("succeeded", (10, 0, 0, 0, 3))
    assert row.report and "the same object as feature 2" in str(row.report["items"])
    assert [item["index"] for item in row.report["items"]] == list(range(13))
    assert sorted(path.name for path in import_folder(row).iterdir()) == ["report.csv"]


@pytest.mark.django_db(transaction=True)
def test_a_preview_yields_resumes_and_reports_the_same(
    canvas: Canvas, annotator: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK", 4)
    features = json.loads(document(10))["features"]
    twice = json.dumps(collection(*features, features[1], {"type": "Odd"})).encode()
    uninterrupted = run(stage(canvas, annotator, twice, is_preview=True))
    row = stage(canvas, annotator, twice, is_preview=True)
    gives_way_at(monkeypatch, 2)
    row = run(row)
    assert (state(row), row.stage, row.done) == ("queued", "previewing", 8)
    read: list[int] = []
    planned = reading._plan_feature

    def seen(run: Any, index: int, raw: object) -> Any:
        read.append(index)
        return planned(run, index, raw)

    monkeypatch.setattr(reading, "_plan_feature", seen)
    monkeypatch.delattr(reading, "_survey_features")
    row = run(row)
    assert read == list(range(8, 13))
    assert (state(row), row.stage, row.report) == ("succeeded", "previewed", uninterrupted.report)
    tables = [
        (import_folder(roi_import) / "report.csv").read_text()
        for roi_import in (row, uninterrupted)
    ]
    assert tables[0] == tables[1] and not Roi.objects.exists()
    row = run(roi_import_start(row=row, user=annotator, choices=ImportChoices(), is_preview=False))
    assert (state(row), counts(row)) == ("succeeded", (10, 0, 0, 0, 3))


@pytest.mark.django_db(transaction=True)
def test_an_import_of_a_format_without_offsets_resumes(
    canvas: Canvas, annotator: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK", 2)
    dots = "".join(
        f'<Annotation Name="n{n}" Type="Dot"><Coordinates><Coordinate Order="0" X="{n}" Y="5"/>'
        "</Coordinates></Annotation>"
        for n in range(5)
    )
    root = f"<ASAP_Annotations><Annotations>{dots}</Annotations></ASAP_Annotations>"
    row = stage(canvas, annotator, root.encode())
    gives_way_at(monkeypatch, 1, 2)
    assert [run(row).done, run(row).done] == [2, 4]
    row = run(row)
    assert (state(row), counts(row)) == ("succeeded", (5, 0, 0, 0, 0))
    assert Roi.objects.count() == 5


def test_an_import_does_not_survey_the_document_after_its_preview(
    canvas: Canvas, annotator: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = run(stage(canvas, annotator, document(3), is_preview=True))
    monkeypatch.delattr(reading, "_survey_features")
    row = run(roi_import_start(row=row, user=annotator, choices=ImportChoices(), is_preview=False))
    assert (state(row), counts(row)) == ("succeeded", (3, 0, 0, 0, 1))
