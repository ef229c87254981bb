"""CVAT's XML, for video and for images: tracks by their key frames, shapes and tags of images."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from portal.annotations.formats.cvat_tags import FrameTags
from portal.annotations.formats.cvat_tracks import track_feature
from portal.annotations.formats.cvat_writing import NAME_KEY, cvat_write
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
from portal.annotations.formats.pieces import closed, runs_outline
from portal.annotations.formats.sniffing import root_name
from portal.annotations.formats.types import NO_LABEL, ExportChoices, FormatError, Plane, Rois
from portal.annotations.formats.xml import elements
from portal.annotations.geometry import GeoJsonGeometry
from portal.annotations.models import RoiKind
from portal.annotations.qupath import (
    EventFeature,
    Feature,
    FeatureError,
    Problem,
    feature_description,
    one_line,
)

_MARKS = ("points", "polyline")  # without key frames: each is a separate region
_SHAPES = ("box", "polygon", "ellipse", "mask", "polyline", "points", "cuboid", "skeleton")
_STEPS = 64  # vertices of an ellipse: its area is right to .2 %
_MAX_ATTRIBUTES = 50  # of one region: a person wrote them, not a program
_LONGEST_RUN = 2**40  # more pixels than any image has
_COLOR = re.compile(r"#[0-9a-fA-F]{6}$")


class Cvat:
    """ "CVAT for video 1.1" and "CVAT for images 1.1", both ways."""

    name, title = "cvat", "CVAT XML"
    suffix, media_type = ".xml", "application/xml"
    for_video = True

    def sniff(self, head: bytes) -> bool:
        """Recognise the format by its root element."""
        return root_name(head) == "annotations"

    def read(self, stream: IO[bytes], plane: Plane) -> Iterator[Any]:
        """A track as one region with key frames; on a still, shapes of a single frame. Then the
        tags of a video's frames as events."""
        drawn_on, images, frames = _images(stream, plane)
        stream.seek(0)
        features = _features(stream, plane, drawn_on, images, is_one_frame=len(frames) < 2)
        yield from features_on_canvas(features, drawn_on, plane)

    def image_decided(self, stream: IO[bytes], plane: Plane) -> str:
        """Property by which the image of the canvas was found."""
        return _images(stream, plane)[1].decided

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """Tracks and tags of a video, shapes of an image; of each outline its rings, without
        holes."""
        return cvat_write(rois_in_file(rois, plane), plane_drawn_on(plane), choices.events)


def _features(
    stream: IO[bytes], plane: Plane, drawn_on: Plane, images: ImageChoice, *, is_one_frame: bool
) -> Iterator[Feature | EventFeature | Problem]:
    colors: dict[str, str] = {}
    tags = FrameTags()
    place = 0
    for element in elements(stream, "meta", "track", "image", kind="CVAT"):
        if element.tag == "meta":
            _refuse_other_size(element, drawn_on, plane)
            colors = _colors(element)
        elif element.tag == "track":
            yield from _track(element, plane, colors, is_one_frame=is_one_frame)
        else:
            yield from _image(element, place, images, colors)
            if plane.is_video:
                yield from _image_tags(element, place, images, tags)
            place += 1
    yield from tags.events()


def _refuse_other_size(meta: Any, drawn_on: Plane, plane: Plane) -> None:
    """Refuse shapes that were drawn on a video of another size: they would be misplaced."""
    for size in meta.iter("original_size"):
        width, height = size.findtext("width", ""), size.findtext("height", "")
        expected = f"{drawn_on.width_px} x {drawn_on.height_px}"
        if width and height and f"{width.strip()} x {height.strip()}" != expected:
            raise FormatError(
                f"CVAT: it was drawn on {width[:9]} x {height[:9]} pixels; "
                f"this canvas has {plane.sizes_text}.",
                code="other-size",
            )


def _colors(meta: Any) -> dict[str, str]:
    color_of_label: dict[str, str] = {}
    for label in meta.iter("label"):
        color = (label.findtext("color") or "").strip()
        if _COLOR.match(color):
            color_of_label[one_line(label.findtext("name") or "")] = color.lower()
    return color_of_label


def _images(stream: IO[bytes], plane: Plane) -> tuple[Plane, ImageChoice, set[str]]:
    """The plane of the document; which images, by their place in it, are the canvas; some frames
    of tracks."""
    images: list[DocumentImage] = []
    frames: set[str] = set()
    sizes: set[tuple[object, ...]] = set()
    for element in elements(stream, "meta", "track", "image", kind="CVAT"):
        if element.tag == "meta":
            sizes |= {
                tuple(_frame(size.findtext(side, "").strip()) for side in ("width", "height"))
                for size in element.iter("original_size")
            }
        elif element.tag == "track":
            frames |= {shape.get("frame", "") for shape in element if len(frames) < 2}
        elif len(images) >= MAX_IMAGES:
            raise FormatError(f"CVAT: more than {MAX_IMAGES:,} images.")
        else:
            size = _frame(element.get("width")), _frame(element.get("height"))
            name = element.get("name", element.get("id") if plane.is_video else None)
            images.append(DocumentImage(len(images), name, *size))
    drawn_on = plane_drawn_on(plane, sizes | {(image.width, image.height) for image in images})
    return drawn_on, image_choose(images, drawn_on), frames


def _track(
    track: Any, plane: Plane, colors: dict[str, str], *, is_one_frame: bool
) -> Iterator[Feature | Problem]:
    label = _label(track)
    origin = {"cvat.track": track.get("id", "")[:20], "cvat.source": track.get("source", "")[:40]}
    shapes = [shape for shape in track if shape.tag in _SHAPES]

    def read(shape: Any) -> Feature | Problem:
        frame = _frame(shape.get("frame")) if plane.is_video else 0
        return _shape(shape, _Place(frame, label, colors.get(label), origin))

    if plane.is_video and not any(shape.tag in _MARKS for shape in shapes):
        feature = track_feature(shapes, read=read)
        if feature is not None:
            yield feature
        return
    for shape in shapes:
        if shape.get("outside") == "1" or shape.get("keyframe", "1") == "0":
            continue
        if plane.is_video or is_one_frame:
            yield read(shape)
        else:
            frame = shape.get("frame", "")[:12]
            reason = f"it is on frame {frame} of several of a video; this canvas is one image"
            yield Problem(reason, _label_name(shape, label, origin["cvat.track"]))


def _label(element: Any) -> str:
    name = one_line(element.get("label", ""))
    return "" if name == NO_LABEL else name


def _image(
    image: Any, place: int, images: ImageChoice, colors: dict[str, str]
) -> Iterator[Feature | Problem]:
    for shape in image:
        if shape.tag not in _SHAPES:
            continue
        if place in images.unread:
            yield Problem(images.unread[place], _label_name(shape))
            continue
        label = _label(shape)
        yield _shape(shape, _Place(images.frames[place], label, colors.get(label)))


def _image_tags(image: Any, place: int, images: ImageChoice, tags: FrameTags) -> Iterator[Problem]:
    for tag in image.iterfind("tag"):
        if place in images.unread:
            yield Problem(images.unread[place], _label_name(tag))
        else:
            tags.add(tag, images.frames[place])


@dataclass(frozen=True, slots=True)
class _Place:
    """Frame, label and track of a shape."""

    frame: int | None
    label: str
    color: str | None
    track: dict[str, str] = field(default_factory=dict)


def _shape(shape: Any, place: _Place) -> Feature | Problem:
    label_name = _label_name(shape, place.label, place.track.get("cvat.track", ""))
    if place.frame is None:
        return Problem("its frame is not a number", label_name)
    try:
        geometry, kind = _geometry(shape)
    except FeatureError as error:
        return Problem(str(error), label_name)
    except (ValueError, TypeError, OverflowError):
        return Problem(f"a {shape.tag} without the numbers it needs", label_name)
    metadata = {key: value for key, value in place.track.items() if value}
    for attribute in list(shape.iter("attribute"))[:_MAX_ATTRIBUTES]:
        metadata[f"cvat.{one_line(attribute.get('name', ''))[:60]}"] = one_line(
            attribute.text or ""
        )[:200]
    if shape.get("occluded") == "1":
        metadata["cvat.occluded"] = "1"
    number = metadata.get("cvat.track", "")
    name = metadata.pop(f"cvat.{NAME_KEY}", "")[:120]
    return Feature(
        id=None,
        geometry=geometry,
        t=place.frame,
        name=name or (f"Track {number}" if number else ""),
        label=place.label,
        color=place.color,
        foreign={"metadata": metadata} if metadata else {},
        kind=kind,
    )


def _label_name(shape: Any, label: str = "", track: str = "") -> str:
    return feature_description(
        shape.tag, f"Track {track}" if track else "", label or one_line(shape.get("label", ""))
    )


def _frame(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 10 else None


def _geometry(shape: Any) -> tuple[GeoJsonGeometry, str]:
    if shape.tag == "polygon":
        return {"type": "Polygon", "coordinates": [closed(_points(shape))]}, RoiKind.POLYGON
    if shape.tag == "points":
        return {"type": "MultiPoint", "coordinates": _points(shape)}, RoiKind.POINT
    if shape.tag == "polyline":
        return {"type": "LineString", "coordinates": _points(shape)}, RoiKind.LINE
    if shape.tag == "box":
        left, top, right, bottom = (float(shape.get(key)) for key in ("xtl", "ytl", "xbr", "ybr"))
        ring = [[left, top], [right, top], [right, bottom], [left, bottom]]
        middle = ((left + right) / 2, (top + bottom) / 2)
        return _rotate(ring, middle, shape), RoiKind.POLYGON
    if shape.tag == "ellipse":
        x, y, rx, ry = (float(shape.get(key)) for key in ("cx", "cy", "rx", "ry"))
        turns = np.linspace(0, 2 * np.pi, _STEPS, endpoint=False)
        ring = np.stack([x + rx * np.cos(turns), y + ry * np.sin(turns)], 1).tolist()
        return _rotate(ring, (x, y), shape), RoiKind.ELLIPSE
    if shape.tag == "mask":
        return _mask(shape), RoiKind.POLYGON
    raise FeatureError(f"a {shape.tag} of CVAT is not read")


def _points(shape: Any) -> list[list[float]]:
    points = shape.get("points", "").split(";")
    return [[float(value) for value in point.split(",")] for point in points]


def _rotate(ring: list[list[float]], middle: tuple[float, float], shape: Any) -> GeoJsonGeometry:
    angle = math.radians(float(shape.get("rotation", "0") or 0))
    if angle:
        c, s = math.cos(angle), math.sin(angle)
        offsets = np.array(ring) - middle
        ring = (offsets @ np.array([[c, s], [-s, c]]) + middle).tolist()
    return {"type": "Polygon", "coordinates": [closed(ring)]}


def _mask(shape: Any) -> GeoJsonGeometry:
    """CVAT's runs go along rows of the mask's box."""
    left, top, width, height = (int(shape.get(key)) for key in ("left", "top", "width", "height"))
    runs = np.array([int(run) for run in shape.get("rle", "").split(",")], np.int64)
    is_run = width > 0 and height > 0 and runs.min() >= 0 and runs.max() < _LONGEST_RUN
    if not is_run or runs.sum() > width * height:
        raise FeatureError("its mask does not fit its box")
    return runs_outline(runs, line_px=width, is_by_column=False, left=left, top=top)
