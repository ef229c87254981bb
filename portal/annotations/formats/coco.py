"""COCO's object detection JSON: polygons out, polygons and run-length masks in."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from ml.types import JsonObject
from portal.annotations.documents import Window, items, members
from portal.annotations.formats.coco_events import (
    VIDEO_ID,
    event_read,
    video_tables,
    videos_of_others,
)
from portal.annotations.formats.file_pixels import (
    features_on_canvas,
    plane_drawn_on,
    rois_in_file,
)
from portal.annotations.formats.images import (
    MAX_IMAGES,
    DocumentImage,
    ImageChoice,
    image_choose,
)
from portal.annotations.formats.pieces import MAX_RUNS, closed, runs_outline, single_rings, united
from portal.annotations.formats.sniffing import first_key
from portal.annotations.formats.types import NO_LABEL, ExportChoices, FormatError, Plane, Rois
from portal.annotations.geometry import GeoJsonGeometry
from portal.annotations.marks import mark_kind, mark_parts
from portal.annotations.models import Label, RoiKind
from portal.annotations.qupath import (
    EventFeature,
    Feature,
    FeatureError,
    Problem,
    feature_description,
    name_read,
    one_line,
)

_KEYS = ("images", "annotations", "categories", "info", "licenses", "dataset", "videos", "events")
_MAX_POLYGONS = 10_000  # of one region: uniting them takes a second
_LONGEST_RUN = 2**40  # more pixels than any image has
_VISIBLE = 2  # of a key point; 0: not labelled
_MAX_METADATA = 50  # of one region: a person wrote them, not a program


@dataclass(slots=True)
class _Tables:
    """Categories and images that the annotations refer to.

    Attributes:
        categories: Names by category id.
        images: Images that match this canvas, by image id.
        other_videos: By id of a video, why it is not this canvas.
    """

    categories: dict[Any, str] = field(default_factory=dict)
    images: ImageChoice = field(default_factory=ImageChoice)
    other_videos: dict[Hashable, str] = field(default_factory=dict)


class Coco:
    """COCO instances, both ways."""

    name, title = "coco", "COCO JSON"
    suffix, media_type = ".coco.json", "application/json"
    for_video = True

    def sniff(self, head: bytes) -> bool:
        """Recognise the format by its first member."""
        return first_key(head) in _KEYS

    def read(self, stream: IO[bytes], plane: Plane) -> Iterator[Any]:
        """Annotations of the image that this canvas is, see ``image_choose``; events of a video."""
        drawn_on, tables = _tables(stream, plane)
        stream.seek(0)
        yield from features_on_canvas(_features(stream, tables), drawn_on, plane)

    def image_decided(self, stream: IO[bytes], plane: Plane) -> str:
        """Property by which the image of the canvas was found."""
        return _tables(stream, plane)[1].images.decided

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """An image, or one for each frame that has regions.

        Points are key points. The format has no lines: they are left out and counted at its end.
        """
        categories: dict[str, int] = {}
        frames: dict[int, int] = {}
        yield b'{"info":{"description":"Regions of interest"},"licenses":[],\n"annotations":['
        separator = ""
        lines = 0
        rois, plane = rois_in_file(rois, plane), plane_drawn_on(plane)
        for number, roi in enumerate(rois(), start=1):
            if roi.shape == RoiKind.LINE:
                lines += 1
                continue
            label = roi.label.name if isinstance(roi.label, Label) else NO_LABEL
            category = categories.setdefault(label, len(categories) + 1)
            image = frames.setdefault(roi.frame_index or 0, len(frames) + 1)
            box = [roi.left, roi.top, roi.right - roi.left, roi.bottom - roi.top]
            document = {
                "id": number,
                "image_id": image,
                "category_id": category,
                "segmentation": [_flat(ring) for ring in single_rings(roi.geometry)],
                **_key_points(roi.geometry),
                "bbox": [round(value, 2) for value in box],
                "area": roi.area_px,
                "iscrowd": 0,
                "attributes": {"id": str(roi.pk), "name": roi.name, "review": roi.review_state},
            }
            yield (separator + _json(document)).encode()
            separator = ",\n"
        images = [_image(image, frame, plane) for frame, image in (frames or {0: 1}).items()]
        listed = [{"id": id, "name": name, "supercategory": ""} for name, id in categories.items()]
        tables = {"images": images, "categories": listed}
        if plane.is_video:
            tables |= video_tables(plane, choices.events)
        yield "".join(["]", *(f',\n"{name}":{_json(tables[name])}' for name in tables)]).encode()
        yield f',"tessera":{{"left_out":{{"lines":{lines}}}}}}}\n'.encode()


def _key_points(geometry: GeoJsonGeometry) -> dict[str, int | list[float]]:
    if mark_kind(geometry) != RoiKind.POINT:
        return {}
    points = [point for part in mark_parts(geometry) for point in part]
    flat = [value for x, y in points for value in (x, y, _VISIBLE)]
    return {"keypoints": flat, "num_keypoints": len(points)}


def _flat(ring: list[list[float]]) -> list[float]:
    return [value for point in ring for value in point]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _image(number: int, frame: int, plane: Plane) -> dict[str, str | int]:
    size = {"width": plane.width_px, "height": plane.height_px}
    if not plane.is_video:
        return {"id": number, "file_name": plane.name, **size}
    place = {"video_id": VIDEO_ID, "frame_id": frame}
    return {"id": number, "file_name": f"frame_{frame:06d}.png", **size, **place}


def _members(text: Window) -> Iterator[str]:
    if text.peek() != "{":
        raise FormatError("COCO: expected an object.")
    yield from members(text)


def _features(stream: IO[bytes], tables: _Tables) -> Iterator[Feature | EventFeature | Problem]:
    text = Window(stream, kind="COCO")
    has_any = False
    for name in _members(text):
        if name == "annotations" and text.peek() == "[":
            has_any = True
            for raw in items(text):
                yield _feature(raw, tables)
        elif name == "events" and text.peek() == "[":
            has_any = True
            for raw in items(text):
                yield event_read(raw, tables.categories, tables.other_videos)
        else:
            text.skip()
    if not has_any:
        raise FormatError("COCO: the array of annotations is missing.")


def _tables(stream: IO[bytes], plane: Plane) -> tuple[Plane, _Tables]:
    """The plane that the document was drawn on, and what its annotations refer to."""
    tables = _Tables()
    images: list[DocumentImage] = []
    videos: dict[Hashable, object] = {}
    text = Window(stream, kind="COCO")
    for name in _members(text):
        if name not in {"images", "categories", "videos"} or text.peek() != "[":
            text.skip()
            continue
        for raw in items(text):
            if not isinstance(raw, Mapping) or not isinstance(raw.get("id"), int | str):
                raise FormatError(f"COCO: one of its {name} has no id.")
            if name == "categories":
                label = one_line(str(raw.get("name", "")))
                tables.categories[raw["id"]] = "" if label == NO_LABEL else label
            elif name == "videos":
                videos[raw["id"]] = raw.get("name", raw.get("file_name"))
            elif len(images) >= MAX_IMAGES:
                raise FormatError(f"COCO: more than {MAX_IMAGES:,} images.")
            else:
                size = raw.get("width"), raw.get("height")
                images.append(DocumentImage(raw["id"], raw.get("file_name"), *size))
    drawn_on = plane_drawn_on(plane, {_size_of(image) for image in images})
    tables.images = image_choose(images, drawn_on)
    tables.other_videos = videos_of_others(videos, plane)
    return drawn_on, tables


def _size_of(image: DocumentImage) -> tuple[object, object]:
    sides = (image.width, image.height)
    return sides if all(isinstance(side, int) for side in sides) else (None, None)


def _feature(raw: object, tables: _Tables) -> Feature | Problem:
    if not isinstance(raw, Mapping):
        return Problem("not an annotation")
    image, category = raw.get("image_id"), raw.get("category_id")
    is_known = isinstance(category, int | str) and category in tables.categories
    label = tables.categories[category] if is_known else ""
    shape = feature_description(f"annotation {raw.get('id', '')!s:.20}", label=label)
    if not isinstance(image, int | str) or image not in tables.images.frames:
        reason = tables.images.unread.get(image) if isinstance(image, int | str) else None
        return Problem(reason or "its image_id names no image of the document", shape)
    if category is not None and not is_known:
        return Problem("its category_id names no category of the document", shape)
    try:
        geometry, notes = _geometry(raw)
    except FeatureError as error:
        return Problem(str(error), shape)
    attributes = raw.get("attributes")
    attribute_map = attributes if isinstance(attributes, Mapping) else {}
    name, more = name_read(attribute_map.get("name", ""))
    return Feature(
        id=None,
        geometry=geometry,
        t=tables.images.frames[image],
        name=name,
        label=label,
        color=None,
        foreign=_foreign(raw, attribute_map),
        notes=(*notes, *more),
    )


def _foreign(raw: Mapping[str, Any], attributes: Mapping[str, Any]) -> JsonObject:
    metadata = {"coco.id": one_line(str(raw.get("id", "")))[:40]} | {
        f"coco.{one_line(str(key))[:60]}": one_line(str(value))[:200]
        for key, value in list(attributes.items())[:_MAX_METADATA]
        if key not in {"name", "id", "review"} and isinstance(value, str | int | float | bool)
    }
    score = raw.get("score")
    is_score = isinstance(score, int | float) and not isinstance(score, bool) and abs(score) < 1e300
    return {"metadata": metadata} | ({"measurements": {"score": score}} if is_score else {})


def _geometry(raw: Mapping[str, Any]) -> tuple[GeoJsonGeometry, tuple[str, ...]]:
    segmentation = raw.get("segmentation")
    if isinstance(segmentation, Mapping):
        return _mask(segmentation), ()
    if isinstance(segmentation, list) and segmentation:
        if len(segmentation) > _MAX_POLYGONS:
            raise FeatureError(f"it has more than {_MAX_POLYGONS:,} polygons")
        return united([_ring(ring) for ring in segmentation]), ()
    points = _points(raw.get("keypoints"))
    if points:
        return {"type": "MultiPoint", "coordinates": points}, ()
    box = raw.get("bbox")
    if isinstance(box, list) and len(box) == 4 and all(map(_is_number, box)):
        x, y, width, height = box
        right, bottom = x + width, y + height
        ring = [[x, y], [right, y], [right, bottom], [x, bottom]]
        return {"type": "Polygon", "coordinates": [closed(ring)]}, ("it has only a box",)
    raise FeatureError("it has no segmentation and no box")


def _points(flat: object) -> list[list[float]]:
    """The labelled key points of a flat list of x, y and visibility in turns."""
    if not isinstance(flat, list) or len(flat) % 3 or not all(map(_is_number, flat)):
        return []
    return [flat[i : i + 2] for i in range(0, len(flat), 3) if flat[i + 2]]


def _ring(flat: object) -> list[list[float]]:
    if not isinstance(flat, list) or len(flat) % 2 or not all(map(_is_number, flat)):
        raise FeatureError("a polygon of its segmentation is not a list of alternating x and y")
    return closed([flat[i : i + 2] for i in range(0, len(flat), 2)])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _mask(segmentation: Mapping[str, Any]) -> GeoJsonGeometry:
    """Runs go down the columns of the image."""
    size, counts = segmentation.get("size"), segmentation.get("counts")
    if (
        not isinstance(size, list)
        or len(size) != 2
        or not all(isinstance(side, int) and 0 < side < 2**31 for side in size)
    ):
        raise FeatureError("the size of its mask is not two numbers")
    if isinstance(counts, str):
        runs = runs_unpacked(counts)
    elif isinstance(counts, list) and all(
        isinstance(run, int) and 0 <= run < _LONGEST_RUN for run in counts[: MAX_RUNS + 1]
    ):
        runs = np.array(counts[: MAX_RUNS + 1], np.int64)
    else:
        raise FeatureError("the counts of its mask are not runs")
    if runs.sum() > size[0] * size[1]:
        raise FeatureError("the runs of its mask go beyond its size")
    return runs_outline(runs, line_px=size[0], is_by_column=True, left=0.0, top=0.0)


def runs_unpacked(text: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """(N,) int64: the runs of COCO's compressed text.

    Six bits a character from ``0`` on: five of the number, least significant first, and one that
    says whether it continues; from the fourth run on it is the difference to the one before the
    last (``rleFrString`` of pycocotools' maskApi.c).

    Raises:
        FeatureError: other characters, too many runs, a run cut short, negative or too long.
    """
    runs: list[int] = []
    value = shift = 0
    is_open = False
    for character in text:
        code = ord(character) - 48
        if not 0 <= code < 64 or shift > 45:
            raise FeatureError("the counts of its mask are not runs")
        value |= (code & 31) << shift
        shift += 5
        is_open = bool(code & 32)
        if is_open:
            continue
        if code & 16:
            value -= 1 << shift
        if len(runs) > 2:
            value += runs[-2]
        if not 0 <= value < _LONGEST_RUN or len(runs) > MAX_RUNS:
            raise FeatureError("the counts of its mask are not runs")
        runs.append(value)
        value = shift = 0
    if is_open:
        raise FeatureError("the counts of its mask are incomplete")
    return np.array(runs, np.int64)
