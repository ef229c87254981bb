"""An import: short transactions, one step to take back."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.annotations.models import Label, Roi, RoiImport, RoiRevision
from portal.annotations.services import exchange, imports, reading
from portal.annotations.services.exchange import ImportChoices, roi_import, roi_import_preview
from portal.annotations.services.imports import import_fields_update, roi_import_undo
from portal.annotations.services.labels import label_set_ensure
from portal.annotations.services.rois import roi_create, roi_delete, roi_update
from portal.archive.models import Canvas
from portal.core.errors import InvalidInputError
from portal.core.models import Event
from portal.jobs.models import Job
from portal.labs.models import User
from tests.portal.annotations.support import box, feature, import_of

pytestmark = pytest.mark.django_db


def document(count: int, **properties: Any) -> dict[str, Any]:
    features = [feature(box(n, 0, n + 20, 30), name=f"n{n}", **properties) for n in range(count)]
    return {"type": "FeatureCollection", "features": features}


@pytest.mark.django_db(transaction=True)
def test_an_import_lets_others_write_between_its_parts(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed: list[tuple[int, bool]] = []
    write = exchange._write

    def seen(run: Any, plans: Any) -> None:
        committed.append((Roi.objects.count(), connection.in_atomic_block))
        write(run, plans)

    monkeypatch.setattr(exchange, "_write", seen)
    roi_import(canvas=canvas, user=annotator, document=document(2 * reading.CHUNK + 1))
    assert committed == [(0, False), (reading.CHUNK, False), (2 * reading.CHUNK, False)]


def test_a_chunk_of_an_import_takes_few_statements(
    canvas: Canvas, annotator: User, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(47):
        roi_import(canvas=canvas, user=annotator, document=document(reading.CHUNK))
    assert Event.objects.filter(name="roi.saved").count() == reading.CHUNK
    assert [job.kind for job in Job.objects.all()] == ["canvas_embed"]


def test_rows_that_a_part_names_are_locked_in_the_order_of_their_ids(
    canvas: Canvas, annotator: User
) -> None:
    with CaptureQueriesContext(connection) as queries:
        roi_import(canvas=canvas, user=annotator, document=document(3))
    known = [query["sql"] for query in queries if '"annotations_roi"."geometry"' in query["sql"]]
    assert len(known) == 1 and known[0].partition(" ORDER BY ")[2].startswith(
        '"annotations_roi"."id" ASC'
    )


def test_an_import_is_undone_as_one_step(canvas: Canvas, annotator: User) -> None:
    other = roi_create(canvas=canvas, user=annotator, geometry=box(0, 0, 50, 50)).roi
    before = roi_create(canvas=canvas, user=annotator, geometry=box(9, 9, 80, 80), name="old").roi
    deleted = roi_create(canvas=canvas, user=annotator, geometry=box(5, 5, 60, 60)).roi
    roi_delete(roi=deleted, user=annotator, expected_version=1)
    features = [
        *document(3)["features"],
        feature(box(1, 1, 40, 40), id=str(before.pk), name="new"),
        feature(box(2, 2, 40, 40), id=str(deleted.pk)),
    ]
    report = roi_import(canvas=canvas, user=annotator, document=features)
    undone = roi_import_undo(roi_import=import_of(report), user=annotator)
    assert (undone.removed, undone.reverted, undone.skipped) == (4, 1, 0)
    assert set(Roi.objects.live()) == {other, before}
    before.refresh_from_db()
    assert (before.name, before.geometry) == ("old", box(9, 9, 80, 80))
    assert RoiRevision.objects.filter(roi=before).count() == 3  # nothing of its history is lost


@pytest.mark.django_db(transaction=True)
def test_undoing_lets_others_write_between_its_parts(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = roi_import(canvas=canvas, user=annotator, document=document(5))
    left: list[int] = []
    take_back = imports._part_undone

    def seen(*arguments: Any) -> Any:
        transaction.on_commit(lambda: left.append(Roi.objects.live().count()))
        return take_back(*arguments)

    monkeypatch.setattr(imports, "CHUNK", 2)
    monkeypatch.setattr(imports, "_part_undone", seen)
    roi_import_undo(roi_import=import_of(report), user=annotator)
    assert left == [3, 1, 0]  # each part was committed before the next began


def test_undoing_takes_few_statements_for_many_rois(
    canvas: Canvas, annotator: User, django_assert_max_num_queries: Any
) -> None:
    report = roi_import(canvas=canvas, user=annotator, document=document(60))
    row = import_of(report)
    with django_assert_max_num_queries(32):  # it was six for each ROI
        undone = roi_import_undo(roi_import=row, user=annotator)
    assert (undone.removed, Roi.objects.live().count()) == (60, 0)
    assert Event.objects.filter(name="roi.deleted").count() == 60


def test_messages_of_an_import_about_a_region_are_undone(canvas: Canvas, annotator: User) -> None:
    roi = roi_create(canvas=canvas, user=annotator, geometry=box(9, 9, 80, 80)).roi
    data = {"ANNOTATION_DESCRIPTION": "from a file", "Grade": "2"}
    document = feature(box(9, 9, 80, 80), id=str(roi.pk), metadata=data)
    report = roi_import(canvas=canvas, user=annotator, document=[document])
    roi.refresh_from_db()
    assert (roi.description, roi.properties) == ("from a file", {"Grade": "2"})
    row = import_of(report)
    assert roi_import_undo(roi_import=row, user=annotator).reverted == 1
    roi.refresh_from_db()
    assert (roi.description, roi.properties) == ("", {})


def test_a_retired_label_does_not_prevent_undo(canvas: Canvas, annotator: User) -> None:
    label = Label.objects.create(
        lab_id=canvas.lab_id, label_set=label_set_ensure(lab=canvas.lab), name="Before"
    )
    roi = roi_create(canvas=canvas, user=annotator, geometry=box(9, 9, 80, 80), label=label).roi
    document_of = [feature(box(9, 9, 80, 80), id=str(roi.pk)), *document(2)["features"]]
    report = roi_import(canvas=canvas, user=annotator, document=document_of)
    Label.objects.update(retired_at=timezone.now())
    row = import_of(report)
    undone = roi_import_undo(roi_import=row, user=annotator)
    assert (undone.removed, undone.reverted, undone.skipped) == (2, 0, 1)


def test_later_changes_survive_undo(canvas: Canvas, annotator: User) -> None:
    report = roi_import(canvas=canvas, user=annotator, document=document(3))
    stored = Roi.objects.select_related("canvas").get(name="n1")
    roi_update(roi=stored, user=annotator, expected_version=1, changes={"name": "mine"})
    row = import_of(report)
    undone = roi_import_undo(roi_import=row, user=annotator)
    assert (undone.removed, undone.skipped) == (2, 1)
    assert [roi.name for roi in Roi.objects.live()] == ["mine"]
    row.refresh_from_db()
    assert roi_import_undo(roi_import=row, user=annotator).skipped == 0  # a second time: nothing


def test_an_import_without_changes_has_nothing_to_undo(canvas: Canvas, annotator: User) -> None:
    roi_import(canvas=canvas, user=annotator, document=document(2))
    again = roi_import(canvas=canvas, user=annotator, document=document(2))
    assert (again.import_id, RoiImport.objects.count()) == (None, 1)


def test_undone_rois_return_when_imported_again(canvas: Canvas, annotator: User) -> None:
    """Features without ids are matched by content, including deleted ones."""
    first = roi_import(canvas=canvas, user=annotator, document=document(2))
    row = import_of(first)
    roi_import_undo(roi_import=row, user=annotator)
    foreseen = roi_import_preview(canvas=canvas, user=annotator, document=document(2))
    assert (foreseen.count("restored"), len(foreseen.outlines)) == (2, 2)
    again = roi_import(canvas=canvas, user=annotator, document=document(2))
    assert (again.count("restored"), Roi.objects.live().count()) == (2, 2)
    row = import_of(again)
    assert roi_import_undo(roi_import=row, user=annotator).removed == 2
    assert not Roi.objects.live().exists()


def test_a_long_import_without_writes_sends_heartbeats(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK", 2)
    monkeypatch.setattr(exchange, "HEARTBEAT_EVERY_S", 0.0)
    messages: list[int] = []

    def counted(row: RoiImport, **more: Any) -> None:
        messages.append(more.get("done", -1))
        import_fields_update(row, **more)

    monkeypatch.setattr(exchange, "import_fields_update", counted)
    odd = [feature({"type": "Circle", "coordinates": [1, 1]})] * 5
    roi_import(canvas=canvas, user=annotator, document=[*document(1)["features"], *odd])
    assert messages == [2, 2, 4, 6, -1]


def test_ids_that_another_import_wrote_in_between_are_met_again(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ["5ee7a3d4-0f51-4d4c-9a43-1c5ad3ac0001", "5ee7a3d4-0f51-4d4c-9a43-1c5ad3ac0002"]
    features = [feature(box(n, 0, n + 20, 30), id=item) for n, item in enumerate(ids)]
    roi_import(canvas=canvas, user=annotator, document=features[:1])
    looked: list[int] = []

    def before_the_other(run: Any, plans: Any, model: Any) -> Any:
        """The first look is as it was before the other import wrote its row."""
        known: Any = reading.plans_known(run, plans, model)
        if model is not Roi:
            return known
        looked.append(len(plans))
        return [(plan, None) for plan, _ in known] if len(looked) == 1 else known

    monkeypatch.setattr(exchange, "plans_known", before_the_other)
    report = roi_import(canvas=canvas, user=annotator, document=features)
    assert looked == [2, 2]
    assert (report.count("unchanged"), report.count("created"), report.total) == (1, 1, 2)
    assert {str(roi.pk) for roi in Roi.objects.live()} == set(ids)


def test_a_refused_strict_import_writes_nothing(canvas: Canvas, annotator: User) -> None:
    features = [*document(2)["features"], feature({"type": "Circle", "coordinates": [1, 1]})]
    with pytest.raises(InvalidInputError, match="feature 3"):
        roi_import(
            canvas=canvas, user=annotator, document=features, choices=ImportChoices(strict=True)
        )
    assert not Roi.objects.exists() and not RoiImport.objects.exists()
