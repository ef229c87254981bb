"""ROI writes: versions, revisions, events, undo, races."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
from django.db import OperationalError, connections

from portal.annotations.geometry import InvalidRoiGeometryError
from portal.annotations.models import Label, Roi, RoiRevision
from portal.annotations.services.rois import (
    roi_create,
    roi_delete,
    roi_restore,
    roi_update,
    version_changes,
)
from portal.annotations.services.writing import ROIS
from portal.archive.models import Canvas
from portal.core.errors import (
    ConflictError,
    InvalidInputError,
    StaleVersionError,
)
from portal.core.models import Event
from portal.labs.models import User
from tests.portal.annotations.support import box, names


def test_creating_writes_row_revision_and_event(canvas: Canvas, annotator: User) -> None:
    saved = roi_create(canvas=canvas, user=annotator, geometry=box(10, 10, 110, 60), name=" A  b ")
    assert (saved.created, saved.roi.version, saved.roi.name) == (True, 1, "A b")
    revision = RoiRevision.objects.get(roi=saved.roi)
    assert (revision.action, revision.author, revision.version) == ("create", annotator, 1)
    event = Event.objects.get(name="roi.saved")
    assert event.payload["roi_id"] == str(saved.roi.pk)
    assert event.payload["geometry_changed"] is True
    assert event.lab_id == canvas.lab_id


def test_a_refused_outline_writes_nothing(canvas: Canvas, annotator: User) -> None:
    with pytest.raises(InvalidRoiGeometryError):
        roi_create(canvas=canvas, user=annotator, geometry=box(5000, 5000, 5010, 5010))
    assert not Roi.objects.exists()
    assert not Event.objects.exists()


def test_the_same_save_sent_twice_makes_one_roi(canvas: Canvas, annotator: User) -> None:
    roi_id = uuid.uuid4()
    first = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), roi_id=roi_id)
    roi_update(roi=first.roi, user=annotator, expected_version=1, changes={"name": "later"})
    again = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), roi_id=roi_id)
    assert (again.created, again.roi.pk, again.roi.name) == (False, roi_id, "later")
    with pytest.raises(ConflictError, match="taken"):
        roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 8), roi_id=roi_id)
    assert Roi.objects.count() == 1


def test_every_change_is_a_revision_with_its_author(
    roi: Roi, annotator: User, reviewer: User, label: Label
) -> None:
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"geometry": box(0, 0, 9, 9)})
    roi_update(
        roi=roi,
        user=reviewer,
        expected_version=2,
        changes={"label": label},
    )
    rows = RoiRevision.objects.filter(roi=roi).values_list("version", "action", "author", "label")
    assert list(rows) == [
        (1, "create", annotator.pk, None),
        (2, "update", annotator.pk, None),
        (3, "update", reviewer.pk, label.pk),
    ]
    first = RoiRevision.objects.get(roi=roi, version=1)
    assert first.geometry == box(10, 10, 110, 60)
    roi.refresh_from_db()
    assert (roi.version, roi.right, roi.area_px) == (3, 9, 81)


def test_saving_without_changes_creates_no_version(roi: Roi, annotator: User) -> None:
    saved = roi_update(
        roi=roi,
        user=annotator,
        expected_version=1,
        changes={"geometry": box(10, 10, 110, 60), "name": "", "label": None},
    )
    assert (saved.changed, saved.roi.version) == (False, 1)
    assert RoiRevision.objects.count() == 1


def test_a_stale_version_is_refused_without_losing_data(roi: Roi, annotator: User) -> None:
    stale = Roi.objects.select_related("canvas").get(pk=roi.pk)
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"name": "first"})
    with pytest.raises(StaleVersionError, match=r"version 1\b.*\b2\b") as error:
        roi_update(roi=stale, user=annotator, expected_version=1, changes={"name": "second"})
    assert error.value.details["current_version"] == 2
    assert Roi.objects.get(pk=roi.pk).name == "first"
    assert RoiRevision.objects.count() == 2


def test_deleting_is_a_revision_that_can_be_undone(roi: Roi, annotator: User) -> None:
    roi_delete(roi=roi, user=annotator, expected_version=1)
    assert not Roi.objects.live().exists()
    with pytest.raises(ConflictError, match="deleted"):
        roi_update(roi=roi, user=annotator, expected_version=2, changes={"name": "x"})
    roi_restore(roi=roi, user=annotator)
    assert Roi.objects.live().get().geometry == box(10, 10, 110, 60)
    actions = list(RoiRevision.objects.filter(roi=roi).values_list("action", flat=True))
    assert actions == ["create", "delete", "restore"]
    assert names() == ["roi.saved", "roi.deleted", "roi.saved"]


def test_restoring_a_live_roi_changes_nothing(roi: Roi, annotator: User) -> None:
    assert roi_restore(roi=roi, user=annotator).roi.version == 1
    assert RoiRevision.objects.count() == 1


def test_a_new_outline_takes_the_review_back(roi: Roi, annotator: User, reviewer: User) -> None:
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"review_state": "submitted"})
    roi_update(roi=roi, user=reviewer, expected_version=2, changes={"review_state": "accepted"})
    roi_update(roi=roi, user=annotator, expected_version=3, changes={"name": "named"})
    assert roi.review_state == "accepted"
    roi_update(roi=roi, user=annotator, expected_version=4, changes={"geometry": box(0, 0, 5, 5)})
    assert roi.review_state == "draft"


def test_a_label_of_another_lab_is_unknown(
    canvas: Canvas, roi: Roi, annotator: User, foreign_label: Label
) -> None:
    with pytest.raises(InvalidInputError, match="label"):
        roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), label=foreign_label)
    with pytest.raises(InvalidInputError, match="label"):
        roi_update(roi=roi, user=annotator, expected_version=1, changes={"label": foreign_label})


def test_a_roi_on_a_video_names_its_frame(video_canvas: Canvas, annotator: User) -> None:
    def create(**frame: Any) -> Roi:
        return roi_create(
            canvas=video_canvas, user=annotator, geometry=box(1, 1, 9, 9), **frame
        ).roi

    frame_roi = create(frame_index=3, frame_pts=200)
    assert (frame_roi.frame_index, frame_roi.frame_pts) == (3, 200)
    assert create(frame_pts=80).frame_index == 2
    assert create(frame_index=1).frame_pts == 40
    for frame, words in (
        ({}, "needs its frame"),
        ({"frame_index": 4}, "frames 0 to 3"),
        ({"frame_pts": 41}, "no frame of this video has the presentation time 41"),
        ({"frame_index": 1, "frame_pts": 80}, "index 1 has the presentation time 40, not 80"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            create(**frame)


def test_a_frame_on_a_slide_is_refused(canvas: Canvas, annotator: User) -> None:
    with pytest.raises(InvalidInputError, match="video"):
        roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), frame_index=0)


@pytest.mark.django_db(transaction=True)
def test_exactly_one_of_two_writers_with_the_same_version_wins(roi: Roi, annotator: User) -> None:
    barrier = threading.Barrier(4)
    outcomes: list[str] = []

    def write(name: str) -> None:
        mine = Roi.objects.select_related("canvas").get(pk=roi.pk)
        barrier.wait()
        while True:
            try:
                roi_update(roi=mine, user=annotator, expected_version=1, changes={"name": name})
                outcomes.append(name)
            except StaleVersionError:
                outcomes.append("stale")
            except OperationalError:  # SQLite in memory has no busy timeout
                continue
            break
        connections.close_all()

    threads = [threading.Thread(target=write, args=(f"writer {i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [outcome for outcome in outcomes if outcome != "stale"]
    assert len(winners) == 1
    assert len(outcomes) == 4
    assert Roi.objects.get(pk=roi.pk).name == winners[0]
    assert RoiRevision.objects.filter(roi=roi).count() == 2


def test_the_update_itself_is_guarded_by_the_version(roi: Roi, annotator: User) -> None:
    """Without a lock between check and write, the WHERE clause of the UPDATE decides."""
    other = Roi.objects.get(pk=roi.pk)
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"name": "first"})
    with pytest.raises(StaleVersionError):
        ROIS.write(other, {"name": "second"})
    assert Roi.objects.get(pk=roi.pk).name == "first"


def test_any_version_is_brought_back_as_one_new_one(
    roi: Roi, annotator: User, label: Label
) -> None:
    roi_update(
        roi=roi,
        user=annotator,
        expected_version=1,
        changes={"name": "b", "label": label, "geometry": box(1, 1, 9, 9)},
    )
    first = roi.revisions.get(version=1)
    roi_restore(roi=roi, user=annotator, expected_version=2, changes=version_changes(roi, 1))
    assert (roi.version, roi.name, roi.label, roi.geometry) == (3, "", None, first.geometry)
    roi_delete(roi=roi, user=annotator, expected_version=3)
    roi_restore(roi=roi, user=annotator, expected_version=4, changes=version_changes(roi, 2))
    assert (roi.version, roi.name, roi.deleted_at) == (5, "b", None)
    actions = list(roi.revisions.values_list("action", flat=True))
    assert actions == ["create", "update", "update", "delete", "restore"]
