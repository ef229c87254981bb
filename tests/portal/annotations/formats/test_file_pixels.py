"""Formats that count the pixels of a video's file, where the canvas has square pixels."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
import shapely

from portal.annotations.documents import DocumentError
from portal.annotations.formats.registry import READERS, WRITERS
from portal.annotations.formats.types import ExportChoices, Plane
from portal.annotations.marks import outline_from_geojson
from portal.annotations.models import Label, Roi, RoiKind
from portal.annotations.qupath import Feature, Problem, feature_read
from portal.annotations.services.fields import shape_fields, shape_kind
from portal.archive.models import Video
from tests.portal.annotations.formats.reading import VIDEO
from tests.portal.annotations.support import box

PAL = replace(VIDEO, width_px=1024, height_px=576, file_size=(720, 576))
TALL = replace(VIDEO, width_px=720, height_px=540, file_size=(720, 288))
SQUARE = replace(VIDEO, width_px=1024, height_px=576)


def roi(geometry: Any, plane: Plane = PAL, **fields: Any) -> Roi:
    shape = outline_from_geojson(geometry, width_px=plane.width_px, height_px=plane.height_px)
    kind = shape_kind(shape, RoiKind.POLYGON)
    label = Label(name="Polyp", color="#c80000")
    return Roi(label=label, shape=kind, name="One", frame_index=3, **shape_fields(shape), **fields)


def written(name: str, *rois: Roi, plane: Plane = PAL) -> bytes:
    return b"".join(WRITERS[name].write(lambda: iter(rois), plane, ExportChoices()))


def read(name: str, data: bytes, plane: Plane = PAL) -> list[Feature | Problem]:
    features = READERS[name].read(io.BytesIO(data), plane)
    return [
        feature if isinstance(feature, Problem) else feature_read(feature) for feature in features
    ]


def bounds(feature: object) -> tuple[float, ...]:
    assert isinstance(feature, Feature)
    return tuple(shapely.geometry.shape(feature.geometry).bounds)


def test_coco_has_the_pixels_of_the_file() -> None:
    data = json.loads(written("coco", roi(box(512, 100, 640, 200))))
    (image,), (shape,) = data["images"], data["annotations"]
    assert (image["width"], image["height"]) == (720, 576)
    assert shape["bbox"] == pytest.approx([360, 100, 90, 100])
    assert shape["area"] == pytest.approx(9_000)
    assert max(shape["segmentation"][0][::2]) == pytest.approx(450)


def test_cvat_has_the_pixels_of_the_file_in_every_key_frame() -> None:
    key = {"index": 9, "pts": 9, "geometry": box(0, 0, 1024, 576), "shape": "polygon"}
    outside = {"index": 11, "pts": 11, "geometry": None, "shape": "", "outside": True}
    region = roi(box(512, 100, 640, 200), track=[key | {"outside": False}, outside])
    text = written("cvat", region).decode()
    assert "<width>720</width><height>576</height>" in text
    points = [
        [float(value) for value in re.split("[,;]", item)]
        for item in re.findall('points="([^"]*)"', text)
    ]
    assert [(min(p[::2]), max(p[::2])) for p in points[:2]] == [(360, 450), (0, 720)]
    assert region.track[0]["geometry"] == box(0, 0, 1024, 576)  # the region itself is not changed


@pytest.mark.parametrize("name", ["coco", "cvat"])
@pytest.mark.parametrize("plane", [PAL, TALL, SQUARE])
def test_written_outlines_are_read_back_in_place(name: str, plane: Plane) -> None:
    rois = [
        roi(box(10.5, 20.25, 300.75, 200), plane),
        roi({"type": "MultiPoint", "coordinates": [[100, 50], [300.5, 70]]}, plane),
    ]
    back = read(name, written(name, *rois, plane=plane), plane)
    for item, was in zip(back, rois, strict=True):
        expected = shapely.geometry.shape(was.geometry).bounds
        assert bounds(item) == pytest.approx(expected, abs=0.02)


def cvat(width: int, height: int, shape: str) -> bytes:
    size = f"<original_size><width>{width}</width><height>{height}</height></original_size>"
    track = f'<track id="0" label="polyp">{shape}</track>'
    text = f"<annotations><meta><task>{size}</task></meta>{track}</annotations>"
    return text.encode()


BOX = '<box frame="2" outside="0" keyframe="1" xtl="360" ytl="100" xbr="450" ybr="200"/>'
MASK = (
    '<mask frame="2" outside="0" keyframe="1" rle="0,9000" left="360" top="100" width="90" '
    'height="100"/>'
)
ELLIPSE = '<ellipse frame="2" outside="0" keyframe="1" cx="405" cy="150" rx="45" ry="50"/>'


@pytest.mark.parametrize("shape", [BOX, MASK, ELLIPSE])
def test_shapes_of_cvat_are_put_where_the_canvas_shows_them(shape: str) -> None:
    (result,) = read("cvat", cvat(720, 576, shape))
    assert bounds(result) == pytest.approx((512, 100, 640, 200), abs=0.5)


def test_every_key_frame_of_a_track_is_converted() -> None:
    later = BOX.replace('frame="2"', 'frame="8"').replace('xtl="360"', 'xtl="0"')
    end = later.replace('frame="8"', 'frame="9"').replace('outside="0"', 'outside="1"')
    (result,) = read("cvat", cvat(720, 576, BOX + later + end))
    assert isinstance(result, Feature) and isinstance(result.track, list)
    assert shapely.geometry.shape(result.track[0]["geometry"]).bounds == (0, 100, 640, 200)


def test_a_document_drawn_on_displayed_frames_is_read_as_it_is() -> None:
    """Such as predictions for the frames that the portal itself gives out."""
    (result,) = read("cvat", cvat(1024, 576, BOX))
    assert bounds(result) == (360, 100, 450, 200)
    image = {"id": 1, "file_name": "frame_000002.png", "width": 1024, "height": 576}
    shape = {"id": 1, "image_id": 1, "bbox": [360, 100, 90, 100]}
    data = json.dumps({"images": [image], "annotations": [shape], "categories": []}).encode()
    (result,) = read("coco", data)
    assert bounds(result) == (360, 100, 450, 200)


def test_a_document_drawn_at_another_size_is_refused_with_both_sizes() -> None:
    with pytest.raises(DocumentError, match=r"1920 x 1080 .* 720 x 576"):
        read("cvat", cvat(1920, 1080, BOX))


def test_numbers_that_are_none_are_still_one_problem_of_one_shape() -> None:
    lonely = '<polygon frame="2" outside="0" keyframe="1" points="1;2;3"/>'
    features = READERS["cvat"].read(io.BytesIO(cvat(720, 576, lonely)), PAL)
    assert len(list(features)) == 1


@pytest.mark.django_db
def test_the_plane_of_a_video_knows_the_size_of_its_file(video_canvas: Any) -> None:
    from portal.annotations.formats.types import plane_of

    assert plane_of(video_canvas).file_size is None
    geometry = {"stored_width_px": 720, "stored_height_px": 576, "quarter_turns": 1}
    Video.objects.filter(canvas=video_canvas).update(
        geometry=geometry | {"aspect_width": 64, "aspect_height": 45}
    )
    video_canvas.width_px, video_canvas.height_px = 576, 1024
    video_canvas.save()
    canvas = type(video_canvas).objects.get(pk=video_canvas.pk)
    assert plane_of(canvas).file_size == (576, 720)
