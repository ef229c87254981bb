"""Events of a video in documents of CVAT and COCO, those of other tools and our own."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from portal.annotations.documents import DocumentError
from portal.annotations.formats import cvat_tags
from portal.annotations.formats.registry import WRITERS
from portal.annotations.formats.types import ExportChoices
from portal.annotations.models import VideoEvent
from portal.annotations.qupath import EventFeature, Feature, Problem
from tests.portal.annotations.formats.reading import SLIDE, VIDEO, read

FIRST = uuid.UUID(int=1)


def event(name: str, first: int, last: int, *, note: str = "", pk: int = 1) -> VideoEvent:
    frames = {"first_index": first, "last_index": last, "first_pts": 0, "last_pts": 0}
    return VideoEvent(id=uuid.UUID(int=pk), name=name, note=note, **frames)


def written(name: str, *events: VideoEvent) -> str:
    pieces = WRITERS[name].write(lambda: iter(()), VIDEO, ExportChoices(events=events))
    return b"".join(pieces).decode()


def spans(found: list[Any]) -> list[tuple[str, str, int, int]]:
    return [(row.name, row.note, row.first_index, row.last_index) for row in found]


CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta><task><name>sweep.mp4</name><mode>interpolation</mode></task></meta>
  <image id="3" name="frame_000003" width="1000" height="800">
    <tag label="Caecum" source="manual"></tag>
    <tag label="Poor view" source="manual"><attribute name="cause">stool</attribute></tag>
    <box label="Polyp" source="manual" occluded="0" xtl="1" ytl="1" xbr="9" ybr="9" z_order="0"/>
  </image>
  <image id="4" name="frame_000004" width="1000" height="800">
    <tag label="Caecum" source="manual"></tag>
  </image>
  <image id="5" name="frame_000005" width="1000" height="800">
    <tag label="Poor view" source="manual"><attribute name="cause">stool</attribute></tag>
  </image>
</annotations>
"""


def test_tags_alike_on_frames_in_a_row_are_one_event() -> None:
    shape, *found = read(CVAT, VIDEO)
    assert isinstance(shape, Feature) and (shape.label, shape.t) == ("Polyp", 3)
    assert all(isinstance(event, EventFeature) and event.id is None for event in found)
    assert spans(found) == [
        ("Poor view", "cause: stool", 3, 3),
        ("Caecum", "", 3, 4),
        ("Poor view", "cause: stool", 5, 5),
    ]


def test_a_tag_of_an_image_without_a_frame_number_is_refused_and_one_of_a_still_left_out() -> None:
    inner = '<image id="0" name="a" width="1000" height="800"><tag label="Caecum"/></image>'
    (result,) = read(f"<annotations>{inner}</annotations>", VIDEO)
    assert isinstance(result, Problem) and "no frame number" in result.reason
    assert read(f"<annotations>{inner}</annotations>", SLIDE) == []


def test_a_document_of_too_many_tags_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cvat_tags, "MAX_TAGS", 2)
    with pytest.raises(DocumentError, match="more than 2 tags"):
        read(CVAT, VIDEO)


def test_a_tag_is_written_on_each_frame_of_its_event() -> None:
    text = written("cvat", event("Tool", 2, 4, note="snare"), event("Caecum", 4, 4, pk=2))
    assert [text.count(f'<image id="{frame}"') for frame in (1, 2, 3, 4, 5)] == [0, 1, 1, 1, 0]
    assert (text.count('<tag label="Tool"'), text.count("snare")) == (3, 1)
    assert "<label><name>Tool</name>" in text


COCO: dict[str, Any] = {
    "videos": [{"id": 7, "name": "sweep.mp4"}, {"id": 8, "name": "other.mp4"}],
    "categories": [{"id": 1, "name": "Caecum"}],
    "events": [
        {"id": 1, "video_id": 7, "category_id": 1, "first_frame": 3},
        {"id": 2, "video_id": 7, "name": "Tool in view", "first_frame": 2, "last_frame": 9},
        {"id": 3, "video_id": 8, "name": "Washing", "first_frame": 1, "last_frame": 1},
        {"id": 4, "video_id": 7, "name": "Biopsy", "first_frame": "soon"},
        "Resection",
    ],
}


def test_events_of_coco_are_those_of_this_video() -> None:
    *found, other, no_frame, no_event = read(json.dumps(COCO), VIDEO)
    assert spans(found) == [("Caecum", "", 3, 3), ("Tool in view", "", 2, 9)]
    assert "other.mp4" in other.reason
    assert ("first_frame" in no_frame.reason, no_event.reason) == (True, "not an event")


def test_a_document_that_is_cut_short_is_refused_entirely() -> None:
    for text in (json.dumps(COCO)[:-30], CVAT[:-30]):
        with pytest.raises(DocumentError, match="invalid"):
            read(text, VIDEO)


@pytest.mark.parametrize("name", ["cvat", "coco"])
def test_events_come_back_with_their_ids_even_where_they_meet(name: str) -> None:
    events = [
        event("Tool", 0, 2, note='one\n<two> & "three"', pk=1),
        event("Tool", 2, 5, pk=2),
        event("Tool", 6, 6, pk=3),
        event("Withdrawal", 1, 9, pk=4),
    ]
    events.sort(key=lambda item: (item.first_index, item.last_index))
    features = read(written(name, *events), VIDEO)
    assert spans(features) == spans(events)
    assert [item.id for item in features] == [item.pk for item in events]


def test_readers_of_coco_for_video_find_video_and_frame_of_an_image() -> None:
    document = json.loads(written("coco", event("Caecum", 3, 3)))
    (image,) = document["images"]
    assert (image["video_id"], image["frame_id"]) == (document["videos"][0]["id"], 0)
