"""Events of a video in imports and exports: round trip, repetition, undo, permissions."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from portal.annotations.formats.registry import WRITERS
from portal.annotations.formats.types import ExportChoices
from portal.annotations.models import Label, Roi, RoiImport, VideoEvent
from portal.annotations.selectors.rois import roi_export
from portal.annotations.selectors.video_events import video_events
from portal.annotations.services import imports, reading
from portal.annotations.services.exchange import roi_import, roi_import_preview
from portal.annotations.services.imports import roi_import_undo
from portal.annotations.services.reading import file_source
from portal.annotations.services.reports import ImportReport
from portal.annotations.services.rois import roi_create
from portal.annotations.services.video_events import (
    video_event_create,
    video_event_delete,
    video_event_update,
)
from portal.archive.models import Canvas
from portal.core.errors import ForbiddenError, InvalidInputError
from portal.labs.models import Lab, User
from tests.portal.annotations.conftest import make_video_canvas
from tests.portal.annotations.staging import run, stage
from tests.portal.annotations.support import box, import_of, statuses

pytestmark = pytest.mark.django_db
FORMATS = pytest.mark.parametrize("name", ["cvat", "coco"])


@pytest.fixture
def events(video_canvas: Canvas, annotator: User) -> list[VideoEvent]:
    """A span with a note, and a moment."""
    span = {"name": "Tool in view", "note": "snare", "first_index": 0, "last_index": 2}
    moment = {"name": "Caecum", "first_index": 3}
    return [
        video_event_create(canvas=video_canvas, user=annotator, **fields).event  # type: ignore[arg-type]
        for fields in (span, moment)
    ]


@pytest.fixture
def second(lab: Lab) -> Canvas:
    """An empty video of as many frames."""
    return make_video_canvas(lab, pts=[0, 10, 20, 30])


def draw(canvas: Canvas, user: User, label: Label) -> None:
    roi_create(canvas=canvas, user=user, geometry=box(1, 1, 90, 90), label=label, frame_index=1)


def exported(name: str, canvas: Canvas, user: User) -> bytes:
    pieces = roi_export(user, canvas, writer=WRITERS[name], choices=ExportChoices())
    return b"".join(pieces)


def imported(canvas: Canvas, user: User, data: bytes) -> ImportReport:
    return roi_import(canvas=canvas, user=user, document=file_source(io.BytesIO(data), canvas))


def rows(canvas: Canvas, user: User) -> list[tuple[Any, ...]]:
    fields = ("name", "note", "first_index", "last_index")
    return list(video_events(user, canvas).values_list(*fields))


@FORMATS
def test_events_are_equal_on_another_video_and_a_second_import_adds_none(
    name: str,
    video_canvas: Canvas,
    second: Canvas,
    events: list[VideoEvent],
    label: Label,
    annotator: User,
) -> None:
    draw(video_canvas, annotator, label)
    data = exported(name, video_canvas, annotator)
    preview = roi_import_preview(
        canvas=second, user=annotator, document=file_source(io.BytesIO(data), second)
    )
    assert (statuses(preview), preview.events) == (["created"] * 3, 2)
    report = imported(second, annotator, data)
    assert (statuses(report), report.events) == (["created"] * 3, 2)
    assert rows(second, annotator) == rows(video_canvas, annotator)
    assert [event.last_pts for event in video_events(annotator, second)] == [20, 30]
    again = imported(second, annotator, data)
    assert (set(statuses(again)), again.events, again.import_id) == ({"unchanged"}, 0, None)
    assert VideoEvent.objects.filter(canvas=second).count() == 2


@FORMATS
def test_a_video_takes_its_own_file_back(
    name: str, video_canvas: Canvas, events: list[VideoEvent], annotator: User
) -> None:
    data, before = exported(name, video_canvas, annotator), rows(video_canvas, annotator)
    changes: Any = {"note": "forceps"}
    span, moment = events
    video_event_update(event=span, user=annotator, expected_version=1, changes=changes)
    video_event_delete(event=moment, user=annotator, expected_version=1)
    report = imported(video_canvas, annotator, data)
    assert sorted(statuses(report)) == ["restored", "updated"]
    assert rows(video_canvas, annotator) == before
    undone = roi_import_undo(roi_import=import_of(report), user=annotator)
    assert (undone.removed, undone.reverted) == (1, 1)
    assert rows(video_canvas, annotator) == [("Tool in view", "forceps", 0, 2)]


def test_an_undo_removes_the_events_and_leaves_one_that_was_changed_since(
    video_canvas: Canvas,
    second: Canvas,
    events: list[VideoEvent],
    label: Label,
    annotator: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(imports, "CHUNK", 1)
    draw(video_canvas, annotator, label)
    report = imported(second, annotator, exported("coco", video_canvas, annotator))
    span = video_events(annotator, second).get(name="Tool in view")
    changes: Any = {"name": "Snare"}
    video_event_update(event=span, user=annotator, expected_version=1, changes=changes)
    undone = roi_import_undo(roi_import=import_of(report), user=annotator)
    assert (undone.removed, undone.skipped) == (2, 1)
    assert [row[0] for row in rows(second, annotator)] == ["Snare"]
    assert not Roi.objects.live().filter(canvas=second).exists()


def test_a_job_counts_events_over_its_parts(
    video_canvas: Canvas,
    second: Canvas,
    events: list[VideoEvent],
    annotator: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "CHUNK", 1)
    data = exported("cvat", video_canvas, annotator)
    row = stage(second, annotator, data, is_preview=False)
    run(row)
    row.refresh_from_db()
    assert row.report is not None
    assert (row.stage, row.report["created"], row.report["events"]) == ("imported", 2, 2)
    assert rows(second, annotator) == rows(video_canvas, annotator)


def coco(*events: dict[str, Any]) -> bytes:
    return json.dumps({"events": events}).encode()


def test_an_event_that_cannot_be_stored_is_refused_with_a_reason(
    video_canvas: Canvas, annotator: User
) -> None:
    good = {"name": "Caecum", "first_frame": 1}
    report = imported(
        video_canvas,
        annotator,
        coco(good, good, {"name": "", "first_frame": 1}, {"name": "Late", "first_frame": 9}),
    )
    assert statuses(report) == ["created", "refused", "refused", "refused"]
    reasons = [item.message for item in report.items[1:]]
    assert "same event as feature 1" in reasons[0]
    assert "needs a name" in reasons[1]
    assert "frames 0 to 3" in reasons[2]


@pytest.mark.parametrize("cut", [10, 40])
def test_a_damaged_document_changes_nothing(
    video_canvas: Canvas, annotator: User, cut: int
) -> None:
    data = coco(*({"name": f"n{frame}", "first_frame": frame} for frame in range(4)))
    with pytest.raises(InvalidInputError, match="JSON"):
        imported(video_canvas, annotator, data[:-cut])
    assert not VideoEvent.objects.exists()
    assert not RoiImport.objects.filter(undone_at=None).exists()


def test_a_still_takes_no_events(canvas: Canvas, annotator: User) -> None:
    report = imported(canvas, annotator, coco({"name": "Caecum", "first_frame": 0}))
    assert "only a video" in report.items[0].message


def test_a_viewer_imports_none_and_another_lab_exports_none(
    video_canvas: Canvas, events: list[VideoEvent], viewer: User, stranger: User
) -> None:
    data = exported("coco", video_canvas, viewer)
    assert len(json.loads(data)["events"]) == 2
    assert json.loads(exported("coco", video_canvas, stranger))["events"] == []
    with pytest.raises(ForbiddenError):
        imported(video_canvas, viewer, data)


def test_an_id_of_another_lab_is_a_new_event(
    video_canvas: Canvas,
    events: list[VideoEvent],
    other_lab: Lab,
    annotator: User,
    stranger: User,
) -> None:
    theirs = make_video_canvas(other_lab, pts=[0, 10, 20, 30])
    report = imported(theirs, stranger, exported("coco", video_canvas, annotator))
    assert statuses(report) == ["created", "created"]
    assert {event.version for event in VideoEvent.objects.filter(canvas=video_canvas)} == {1}
    assert not {event.pk for event in events} & {
        event.pk for event in video_events(stranger, theirs)
    }
