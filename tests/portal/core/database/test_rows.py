"""Rows written at once: the same in the database as if each had been saved by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.forms.models import model_to_dict
from django.test.utils import CaptureQueriesContext

from portal.annotations.models import Label, Roi, RoiAction, RoiRevision
from portal.annotations.services.rois import roi_create
from portal.annotations.services.writing import label_words, roi_revision
from portal.archive.models import Canvas
from portal.core.database.rows import rows_insert, rows_update
from portal.core.models import Event
from portal.labs.models import Lab, User
from tests.portal.annotations.support import box


@pytest.fixture
def roi(canvas: Canvas, annotator: User, label: Label) -> Roi:
    geometry = box(10, 10, 60, 60)
    return roi_create(
        canvas=canvas, user=annotator, geometry=geometry, label=label, properties={"a": "b"}
    ).roi


def values(model: type[Any], **of: Any) -> dict[str, Any]:
    """All columns of one row, as the database has them."""
    return model._base_manager.filter(**of).values().get()


def test_a_row_reads_as_one_that_was_saved(roi: Roi, annotator: User) -> None:
    words = label_words(roi.lab_id)
    saved = roi_revision(roi, RoiAction.UPDATE, annotator, words=words)
    saved.version = 2
    saved.save(force_insert=True)
    written = [roi_revision(roi, RoiAction.UPDATE, annotator, words=words) for _ in range(3)]
    for number, item in enumerate(written, start=3):
        item.version = number
    with CaptureQueriesContext(connection) as queries:
        rows_insert(written)
    assert len(queries) == 1
    assert sorted(written, key=lambda item: item.created_at) == written
    assert len({item.created_at for item in written}) == 3
    as_saved = values(RoiRevision, pk=saved.pk)
    identity = {"id", "version", "created_at", "updated_at"}
    for item in written:
        stored = values(RoiRevision, pk=item.pk)
        assert {k: v for k, v in stored.items() if k not in identity} == {
            k: v for k, v in as_saved.items() if k not in identity
        }
        assert stored["created_at"] == item.created_at >= as_saved["created_at"]
        assert not item._state.adding
    item.name = "changed"
    item.save()
    assert RoiRevision.objects.get(pk=item.pk).name == "changed"


def test_the_database_assigns_numbers_and_given_times_are_stored(lab: Lab) -> None:
    long_ago = datetime(2020, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    events = [Event(name="x", lab_id=lab.pk, payload={"n": n}) for n in range(2)]
    rows_insert(events)
    stored = Event(name="old", payload={}, created_at=long_ago)
    rows_insert([stored], keeps_times=True)
    assert list(Event.objects.filter(name="x").values_list("payload__n", flat=True)) == [0, 1]
    assert Event.objects.get(name="old").created_at == long_ago


def test_an_update_writes_only_the_named_fields_of_its_rows(
    canvas: Canvas, annotator: User, roi: Roi, label: Label
) -> None:
    others = [
        roi_create(canvas=canvas, user=annotator, geometry=box(x, 10, x + 9, 60)).roi
        for x in (100, 200)
    ]
    before = [model_to_dict(item) for item in Roi.objects.order_by("created_at")]
    changed = [roi, others[0]]
    for number, item in enumerate(changed):
        item.geometry = box(1, 1, 5 + number, 5)
        item.name, item.label, item.description = f"n {number}", None, "is not written"
        item.deleted_at = datetime(2026, 1, 1 + number, tzinfo=UTC)
    with CaptureQueriesContext(connection) as queries:
        rows_update(changed, ["geometry", "name", "label", "deleted_at"])
    assert len(queries) == 1
    now = [model_to_dict(item) for item in Roi.all_objects.order_by("created_at")]
    wanted = [
        row | {name: getattr(item, name) for name in ("geometry", "name", "label", "deleted_at")}
        for row, item in zip(before, changed, strict=False)
    ]
    assert now == [*wanted, before[2]]


def test_an_empty_list_needs_no_query() -> None:
    rows_insert([])
    rows_update([], ["name"])
