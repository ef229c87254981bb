"""Events of a video: versions, deletion with undo, repeated saves, permissions."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from portal.annotations.models import VideoEvent, VideoEventRevision
from portal.annotations.selectors.video_events import (
    COMMON_NAMES,
    video_event_names,
    video_events,
)
from portal.annotations.services.trash import VIDEO_EVENT_PURGER
from portal.annotations.services.video_events import (
    video_event_create,
    video_event_delete,
    video_event_restore,
    video_event_update,
)
from portal.archive.models import Canvas
from portal.core.errors import (
    ConflictError,
    InvalidInputError,
    StaleVersionError,
)
from portal.core.models import Event
from portal.labs.models import User

pytestmark = pytest.mark.django_db


def create(canvas: Canvas, user: User, **fields: Any) -> VideoEvent:
    given = {"name": "Caecum", "first_index": 1, **fields}
    return video_event_create(canvas=canvas, user=user, **given).event


def test_a_moment_has_one_frame_with_its_presentation_time(
    video_canvas: Canvas, annotator: User
) -> None:
    event = create(video_canvas, annotator)
    assert (event.first_index, event.first_pts) == (event.last_index, event.last_pts) == (1, 40)
    assert Event.objects.get(name="video_event.saved").payload["version"] == 1


def test_each_change_is_a_version_and_a_deletion_is_undone(
    video_canvas: Canvas, annotator: User
) -> None:
    event = create(video_canvas, annotator)
    changes: Any = {"last_index": 3, "note": "slow"}
    video_event_update(event=event, user=annotator, expected_version=1, changes=changes)
    assert (event.version, event.last_pts) == (2, 200)
    video_event_update(event=event, user=annotator, expected_version=2, changes=changes)
    assert event.version == 2, "nothing differs"
    video_event_delete(event=event, user=annotator, expected_version=2)
    assert not video_events(annotator, video_canvas).exists()
    assert video_events(annotator, video_canvas, deleted=True).get() == event
    with pytest.raises(ConflictError):
        video_event_update(event=event, user=annotator, expected_version=3, changes=changes)
    video_event_restore(event=event, user=annotator)
    rows = VideoEventRevision.objects.values_list("version", "action", "last_index", "note")
    assert list(rows) == [
        (1, "create", 1, ""),
        (2, "update", 3, "slow"),
        (3, "delete", 3, "slow"),
        (4, "restore", 3, "slow"),
    ]


def test_a_stale_change_is_refused(video_canvas: Canvas, annotator: User) -> None:
    event = create(video_canvas, annotator)
    other = VideoEvent.objects.get()
    video_event_update(event=other, user=annotator, expected_version=1, changes={"name": "Ileum"})
    with pytest.raises(StaleVersionError) as caught:
        video_event_update(event=event, user=annotator, expected_version=1, changes={"name": "x"})
    assert caught.value.details["current_version"] == 2
    assert VideoEvent.objects.get().name == "Ileum"


def test_a_save_that_is_sent_again_creates_nothing(video_canvas: Canvas, annotator: User) -> None:
    item: Any = {"canvas": video_canvas, "user": annotator, "first_index": 0, "last_index": 2}
    pk = uuid.uuid4()
    assert video_event_create(name="Tool", event_id=pk, **item).created
    assert not video_event_create(name="Tool", event_id=pk, **item).created
    assert VideoEvent.objects.count() == VideoEventRevision.objects.count() == 1
    with pytest.raises(ConflictError):
        video_event_create(name="Snare", event_id=pk, **item)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"first_index": 4}, "frames 0 to 3"),
        ({"first_index": 2, "last_index": 1}, "before the first"),
        ({"name": " \u200b"}, "needs a name"),
        ({"name": "x" * 81}, "80 at most"),
    ],
)
def test_an_event_that_is_wrong_is_refused(
    video_canvas: Canvas, annotator: User, fields: dict[str, Any], word: str
) -> None:
    with pytest.raises(InvalidInputError, match=word):
        create(video_canvas, annotator, **fields)


def test_an_image_has_no_events(canvas: Canvas, annotator: User) -> None:
    with pytest.raises(InvalidInputError, match="only a video"):
        create(canvas, annotator)


def test_events_are_found_by_name_and_by_frame(video_canvas: Canvas, annotator: User) -> None:
    create(video_canvas, annotator, first_index=0, last_index=2)
    create(video_canvas, annotator, name="Tool in view", first_index=2, last_index=3)

    def names(**query: Any) -> list[str]:
        return [event.name for event in video_events(annotator, video_canvas, **query)]

    assert names(name="tool IN view") == ["Tool in view"]
    assert names(frame_index=2) == ["Caecum", "Tool in view"]
    assert names(frame_index=1) == ["Caecum"]


def test_names_of_the_lab_are_suggested_first(
    video_canvas: Canvas, annotator: User, stranger: User
) -> None:
    create(video_canvas, annotator, name="Appendix")
    create(video_canvas, annotator, name="caecum")
    assert [*video_event_names(annotator, video_canvas.lab_id)][:2] == ["Appendix", "caecum"]
    assert list(video_event_names(stranger, video_canvas.lab_id)) == list(COMMON_NAMES)


def test_deleted_events_are_purged_when_their_days_are_over(
    video_canvas: Canvas, annotator: User
) -> None:
    old, new = create(video_canvas, annotator), create(video_canvas, annotator)
    for event in (old, new):
        video_event_delete(event=event, user=annotator, expected_version=1)
    long_ago = timezone.now() - timedelta(days=1000)
    VideoEvent.objects.filter(pk=old.pk).update(deleted_at=long_ago)
    assert VIDEO_EVENT_PURGER.purge_due() == 1
    assert VideoEvent.objects.get() == new
