"""The pages and addresses of deleted regions and events of videos."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from portal.annotations.models import Roi, VideoEvent
from portal.annotations.services.rois import roi_delete
from portal.annotations.services.video_events import video_event_create, video_event_delete
from portal.archive.models import Canvas
from portal.archive.selectors.trash import trash_rows
from portal.archive.services.items import item_delete
from portal.core.models import Event
from portal.labs.models import User


@pytest.fixture
def deleted_event(video_canvas: Canvas, annotator: User) -> VideoEvent:
    event = video_event_create(
        canvas=video_canvas, user=annotator, name="Caecum", first_index=1, last_index=3
    ).event
    return video_event_delete(event=event, user=annotator, expected_version=1)


def test_regions_are_restored_and_purged_on_their_page(
    client: Client, manager: User, roi: Roi
) -> None:
    client.force_login(manager)
    roi_delete(roi=roi, user=manager, expected_version=1)
    page = reverse("annotations:trash")
    assert client.get(page).context["rows"][0] == roi
    client.post(reverse("annotations:roi_restore", args=[roi.pk]))
    assert Roi.objects.get(pk=roi.pk).deleted_at is None
    roi_delete(roi=Roi.objects.get(pk=roi.pk), user=manager, expected_version=3)
    client.post(reverse("annotations:roi_purge", args=[roi.pk]))
    assert not Roi.all_objects.exists()


def test_events_of_videos_are_restored_and_purged_on_their_page(
    client: Client, manager: User, annotator: User, deleted_event: VideoEvent
) -> None:
    client.force_login(manager)
    page = reverse("annotations:trash_events")
    shown = client.get(page)
    assert [*shown.context["rows"]] == [deleted_event]
    assert shown.context["rows"][0].deleted_by == annotator.full_name
    client.post(reverse("annotations:video_event_restore", args=[deleted_event.pk]))
    event = VideoEvent.objects.get()
    assert (event.deleted_at, event.version) == (None, 3)
    assert not client.get(page).context["rows"]
    video_event_delete(event=event, user=manager, expected_version=3)
    client.post(reverse("annotations:video_event_purge", args=[event.pk]))
    assert not VideoEvent.all_objects.exists()
    payload = Event.objects.get(name="video_event.purged").payload
    assert payload["video_event_id"] == str(event.pk)


def test_every_page_of_deleted_things_counts_the_deleted_events(
    client: Client, annotator: User, deleted_event: VideoEvent
) -> None:
    client.force_login(annotator)
    for name in ("archive:trash", "annotations:trash", "annotations:trash_events"):
        tabs = client.get(reverse(name)).content.decode()
        link = tabs[tabs.index(f'href="{reverse("annotations:trash_events")}') :]
        assert ">1</span>" in link[: link.index("</a>")], name


def test_a_live_event_is_not_purged(
    client: Client, manager: User, deleted_event: VideoEvent
) -> None:
    client.force_login(manager)
    VideoEvent.objects.update(deleted_at=None)
    address = reverse("annotations:video_event_purge", args=[deleted_event.pk])
    assert client.post(address).status_code == 404
    assert VideoEvent.objects.exists()


def test_rest_lists_restores_and_purges_the_deleted_events_of_all_videos(
    api_as: Any, manager: User, stranger: User, deleted_event: VideoEvent
) -> None:
    address = "/api/v1/video-events/"
    deleted = {"deleted": "true"}
    (row,) = api_as(manager).get(address, deleted).json()["results"]
    assert row["id"] == str(deleted_event.pk)
    assert row["deleted_at"]
    assert not api_as(stranger).get(address, deleted).json()["results"]
    assert api_as(manager).post(f"{address}{row['id']}/restore/").status_code == 200
    assert not api_as(manager).get(address, deleted).json()["results"]
    event = VideoEvent.objects.get()
    video_event_delete(event=event, user=manager, expected_version=3)
    assert api_as(stranger).post(f"{address}{row['id']}/purge/").status_code == 404
    assert api_as(manager).post(f"{address}{row['id']}/purge/").status_code == 204
    assert not VideoEvent.all_objects.exists()


def test_a_deleted_video_says_how_many_events_go_with_it(
    video_canvas: Canvas, annotator: User, manager: User
) -> None:
    video_event_create(canvas=video_canvas, user=annotator, name="Caecum", first_index=1)
    entry = item_delete(item=video_canvas.video, user=manager)
    (row,) = trash_rows([entry])
    assert row.holds == "1 event"
