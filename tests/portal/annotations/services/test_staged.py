"""Imports that run as jobs: previewed, decided, imported, undone; over REST."""

from __future__ import annotations

import csv
import uuid
from pathlib import Path
from typing import Any

import pytest

from portal.annotations.models import Label, Roi, RoiImport
from portal.annotations.services import reading
from portal.annotations.services.exchange import ImportChoices
from portal.annotations.services.imports import roi_import_undo
from portal.annotations.services.staged import import_folder, roi_import_start
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError
from portal.jobs.models import Job
from portal.jobs.services import job_cancel
from portal.jobs.worker.runner import job_run
from portal.labs.models import User
from tests.portal.annotations.staging import counts, document, run, stage
from tests.portal.annotations.support import box, collection, feature

pytestmark = pytest.mark.django_db


def test_a_document_is_previewed_then_imported_and_undone(
    canvas: Canvas, annotator: User, storage: Path
) -> None:
    row = run(stage(canvas, annotator, document(5), is_preview=True))
    assert (row.stage, counts(row), Roi.objects.count()) == ("previewed", (5, 0, 0, 0, 1), 0)
    assert row.report and len(row.report["outlines"]) == 5
    assert row.report["outlines"][0]["rings"] == [[0, 0, 9, 0, 9, 9, 0, 9, 0, 0]]
    row = run(roi_import_start(row=row, user=annotator, choices=ImportChoices(), is_preview=False))
    assert (row.stage, counts(row), Roi.objects.live().count()) == ("imported", (5, 0, 0, 0, 1), 5)
    assert not (import_folder(row) / "document").exists()
    lines = list(csv.reader((import_folder(row) / "report.csv").open(newline="")))
    assert [line[1] for line in lines] == ["status", *["created"] * 5, "refused"]
    assert "Circle" in lines[-1][3]
    with pytest.raises(ConflictError, match="imported"):
        roi_import_start(row=row, user=annotator, choices=ImportChoices(), is_preview=False)
    assert roi_import_undo(roi_import=row, user=annotator).removed == 5


def test_choices_of_classes_go_with_the_job(
    canvas: Canvas, annotator: User, label: Label, storage: Path
) -> None:
    row = run(stage(canvas, annotator, document(3, classification="Odd"), is_preview=True))
    assert counts(row) == (0, 0, 0, 0, 4)  # annotators make no labels
    chosen = ImportChoices(labels={"odd": label.pk})
    row = run(roi_import_start(row=row, user=annotator, choices=chosen, is_preview=False))
    assert counts(row) == (3, 0, 0, 0, 1)
    assert set(Roi.objects.values_list("label", flat=True)) == {label.pk}


def test_a_job_waits_can_be_cancelled_and_the_document_started_again(
    canvas: Canvas, annotator: User, storage: Path
) -> None:
    row = stage(canvas, annotator, document(2), is_preview=True)
    with pytest.raises(ConflictError, match="being read"):
        roi_import_start(row=row, user=annotator, choices=ImportChoices(), is_preview=True)
    job_cancel(job=Job.objects.get(pk=row.job_id), user=annotator)
    row = roi_import_start(row=row, user=annotator, choices=ImportChoices(), is_preview=True)
    assert counts(run(row))[0] == 2


def test_an_unreadable_document_is_refused_before_it_is_stored(
    canvas: Canvas, annotator: User, viewer: User, storage: Path
) -> None:
    with pytest.raises(InvalidInputError, match="truncated"):
        stage(canvas, annotator, b"PK\x03\x04")
    with pytest.raises(ForbiddenError):
        stage(canvas, viewer, document(1))
    assert not RoiImport.objects.exists() and not list(storage.glob("scratch/import-*"))
    row = run(stage(canvas, annotator, document(1)[:-20]))
    job = Job.objects.get(pk=row.job_id)
    assert (job.state, "invalid JSON" in job.error_message) == ("failed", True)
    (import_folder(row) / "document").unlink()
    row.stage = "previewed"
    row.save()
    with pytest.raises(ConflictError, check=lambda error: error.code == "gone"):
        roi_import_start(row=row, user=annotator, choices=ImportChoices(), is_preview=False)


# --- over REST ------------------------------------------------------------------------------------


def test_rest_accepts_a_document_once_and_reports_its_state(
    canvas: Canvas, annotator: User, stranger: User, api_as: Any, storage: Path
) -> None:
    api, url = api_as(annotator), f"/api/v1/canvases/{canvas.pk}/roi-file/"
    sent = api.post(
        f"{url}?background=1&dry_run=1&name=cells.geojson",
        document(3),
        content_type="application/octet-stream",
    )
    made = sent.json()
    assert (sent.status_code, sent["Location"]) == (202, f"/api/v1/jobs/{made['job']['id']}/")
    assert (made["stage"], made["name"], made["report"]) == ("previewing", "cells.geojson", None)
    job_run(uuid.UUID(made["job"]["id"]))
    item = f"/api/v1/roi-imports/{made['id']}/"
    seen = api.get(item).json()
    assert (seen["stage"], seen["report"]["created"], seen["job"]["state"]) == (
        "previewed",
        3,
        "succeeded",
    )
    started = api.post(f"{item}start/", {}, format="json")
    assert started.status_code == 202
    assert api.post(f"{item}start/", {}, format="json").status_code == 409
    job_run(uuid.UUID(started.json()["job"]["id"]))
    table = b"".join(api.get(f"{item}report.csv").streaming_content).decode()
    assert len(table.splitlines()) == 5
    for method, path in (("get", item), ("post", f"{item}start/"), ("get", f"{item}report.csv")):
        assert getattr(api_as(stranger), method)(path).status_code == 404


@pytest.mark.parametrize("background", ["", "&background=1"])
def test_the_same_key_imports_once(
    canvas: Canvas, annotator: User, api_as: Any, storage: Path, background: str
) -> None:
    api, url = api_as(annotator), f"/api/v1/canvases/{canvas.pk}/roi-file/?format=auto{background}"

    def send(data: bytes, key: str) -> Any:
        return api.post(url, data, content_type="application/json", HTTP_IDEMPOTENCY_KEY=key)

    first, again = send(document(2), "k" * 9), send(document(2), "k" * 9)
    assert first.json()["id"] == again.json()["id"]
    assert RoiImport.objects.count() == 1
    other = send(document(3), "k" * 9)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert send(document(3), "m" * 9).status_code in {200, 202}
    if not background:
        assert first.json() == again.json()


def test_polling_an_import_needs_few_queries(
    canvas: Canvas, annotator: User, api_as: Any, storage: Path, django_assert_max_num_queries: Any
) -> None:
    row = stage(canvas, annotator, document(30), is_preview=True)
    run(row)
    api = api_as(annotator)
    with django_assert_max_num_queries(9):
        assert api.get(f"/api/v1/roi-imports/{row.pk}/").status_code == 200


def test_large_outlines_are_written_in_smaller_parts(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred of the largest at once would take gigabytes."""
    monkeypatch.setattr(reading, "CHUNK_VERTICES", 10)
    two = {"type": "MultiPolygon", "coordinates": [box(1, 1, 9, 9)["coordinates"]] * 2}
    parts = []
    geometries = [
        *(box(n, 1, n + 5, 9) for n in range(5)),
        two,
        {"type": "Polygon"},
        box(1, 1, 2, 2),
    ]
    run = reading.ImportRun(
        canvas,
        annotator,
        RoiImport(canvas=canvas),
        reading.Classes(
            {}, canvas=canvas, user=annotator, chosen={}, may_create=False, is_preview=True
        ),
        reading.ImportTally(8, None, format="geojson"),
    )
    source = reading.source_of(collection(*(feature(geometry) for geometry in geometries)))
    for plans in reading.plans_read(run, source):
        parts.append([plan.index for plan in plans])
    assert parts == [[0, 1], [2, 3], [4, 5], [7]]  # five vertices a box, ten of two


def test_the_features_of_a_large_document_are_counted_aloud(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first pass over a gigabyte takes minutes: until it ends nobody knows how many."""
    monkeypatch.setattr(reading, "COUNTED", 2)
    messages: list[tuple[int, int, str]] = []
    monkeypatch.setattr(
        "portal.jobs.worker.context.LeasedJobContext.progress",
        lambda self, *result: messages.append(result),
    )
    run(stage(canvas, annotator, document(5), is_preview=True))
    assert [result for result in messages if result[2] == "counting"] == [
        (2, 0, "counting"),
        (4, 0, "counting"),
        (6, 0, "counting"),
    ]
