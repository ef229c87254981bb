"""CVAT's XML, out: tracks of a video and tags of its frames, shapes of an image."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from portal.annotations.formats.cvat_tags import EVENT_KEY, NOTE_KEY, frame_tags
from portal.annotations.formats.cvat_tracks import track_states
from portal.annotations.formats.pieces import pieces_of
from portal.annotations.formats.types import NO_LABEL, Plane, Rois
from portal.annotations.formats.xml import attribute, text
from portal.annotations.models import Label, Roi, RoiKind, VideoEvent

NAME_KEY = "tessera.name"
_PLAIN_COLOR = "#888888"
_SHAPES = {RoiKind.POINT.value: "points", RoiKind.LINE.value: "polyline"}


def cvat_write(rois: Rois, plane: Plane, events: Iterable[VideoEvent]) -> Iterator[bytes]:
    """The document, region by region; labels come first, so the regions are read twice."""
    yield b'<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n<version>1.1</version>\n'
    yield _meta(_labels(rois), dict.fromkeys(event.name for event in events), plane).encode()
    if plane.is_video:
        number = 0
        for roi in rois():
            for states in track_states(roi):
                yield _track(number, roi, states).encode()
                number += 1
        for frame, tags in frame_tags(events):
            yield f"{_image(frame, f'frame_{frame:06d}', plane)}{tags}</image>\n".encode()
    else:
        yield f"{_image(0, plane.name, plane)}\n".encode()
        for roi in rois():
            for ring in pieces_of(roi.geometry):
                yield _shape(f"label={attribute(_label(roi))}", ring, roi).encode()
        yield b"</image>\n"
    yield b"</annotations>\n"


def _labels(rois: Rois) -> dict[str, str]:
    return {
        _label(roi): roi.label.color if isinstance(roi.label, Label) else _PLAIN_COLOR
        for roi in rois()
    }


def _label(roi: Roi) -> str:
    return roi.label.name if isinstance(roi.label, Label) else NO_LABEL


def _attributes(has_regions: bool, has_events: bool) -> str:
    keys = (*([NAME_KEY] * has_regions), *([EVENT_KEY, NOTE_KEY] * has_events))
    return "".join(
        f"<attribute><name>{key}</name><mutable>False</mutable><input_type>text</input_type>"
        "<default_value></default_value><values></values></attribute>"
        for key in keys
    )


def _meta(labels: dict[str, str], events: Collection[str], plane: Plane) -> str:
    listed = "".join(
        f"<label><name>{text(name)}</name><color>{text(color)}</color>"
        f"<attributes>{_attributes(name in labels, name in events)}</attributes></label>"
        for name, color in (dict.fromkeys(events, _PLAIN_COLOR) | labels).items()
    )
    size = f"<width>{plane.width_px}</width><height>{plane.height_px}</height>"
    return (
        f"<meta><task><name>{text(plane.name)}</name><labels>{listed}</labels>"
        f"<original_size>{size}</original_size></task></meta>\n"
    )


def _track(number: int, roi: Roi, states: Sequence[tuple[int, list[list[float]] | None]]) -> str:
    shapes, last = [], next(ring for _, ring in states if ring is not None)
    for frame, ring in states:
        last = last if ring is None else ring
        where = f'frame="{frame}" outside="{int(ring is None)}" keyframe="1"'
        shapes.append(_shape(where, last, roi))
    head = f'<track id="{number}" label={attribute(_label(roi))} source="manual">\n'
    return f"{head}{''.join(shapes)}</track>\n"


def _shape(where: str, ring: list[list[float]], roi: Roi) -> str:
    points = ";".join(f"{x!r},{y!r}" for x, y in ring)
    name = f'<attribute name="{NAME_KEY}">{text(roi.name)}</attribute>' if roi.name else ""
    tag = _SHAPES.get(roi.shape, "polygon")
    return f'<{tag} {where} occluded="0" points="{points}" z_order="0">{name}</{tag}>\n'


def _image(number: int, name: str, plane: Plane) -> str:
    size = f'width="{plane.width_px}" height="{plane.height_px}"'
    return f'<image id="{number}" name={attribute(name)} {size}>'
