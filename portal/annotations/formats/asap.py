"""ASAP's XML: annotations of one ring each, in groups with colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import IO, Any

from portal.annotations.formats.pieces import closed, single_rings
from portal.annotations.formats.sniffing import root_name
from portal.annotations.formats.types import (
    ASAP_NO_GROUP,
    ExportChoices,
    FormatError,
    Plane,
    Rois,
)
from portal.annotations.formats.xml import attribute, elements
from portal.annotations.geometry import GeoJsonGeometry
from portal.annotations.marks import mark_kind, mark_parts
from portal.annotations.models import Label, RoiKind
from portal.annotations.qupath import Feature, Problem, feature_description, name_read, one_line

_AREAS = ("Polygon", "Rectangle", "Spline")
_POINTS, _LINE = ("Dot", "PointSet"), "Measurement"
_COLOR = re.compile(r"#[0-9a-fA-F]{6}$")
_PLAIN_COLOR = "#F4FA58"  # what ASAP itself writes


class Asap:
    """ASAP 1.9 - 2.x, both ways."""

    name, title = "asap", "ASAP XML"
    suffix, media_type = ".xml", "application/xml"
    for_video = True

    def sniff(self, head: bytes) -> bool:
        """Recognise the format by its root element."""
        return root_name(head) == "ASAP_Annotations"

    def read(self, stream: IO[bytes], plane: Plane) -> Iterator[Any]:
        """Polygons, rectangles, splines (by the points they go through), dots, measured lines.

        Raises ``FormatError`` on a video: the format has no frames.
        """
        if plane.is_video:
            raise FormatError(
                "ASAP: its annotations have no frame, so they cannot be placed on a video. "
                "Import them on the still that they were drawn on, or use CVAT or GeoJSON.",
                code="no-frame",
            )
        colors = {
            one_line(group.get("Name", "")): _color(group.get("Color"))
            for group in elements(stream, "Group", kind="ASAP")
        }
        stream.seek(0)
        for element in elements(stream, "Annotation", kind="ASAP"):
            yield _feature(element, colors)

    def image_decided(self, stream: IO[bytes], plane: Plane) -> str:
        """Return nothing: the format names no image."""
        return ""

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """An annotation for each ring; groups are labels. A line of several legs becomes one
        measured line for each leg: in this format a line has two ends only."""
        groups: dict[str, str] = {}
        yield b'<?xml version="1.0" encoding="UTF-8"?>\n<ASAP_Annotations>\n\t<Annotations>\n'
        for index, roi in enumerate(rois()):
            label = roi.label if isinstance(roi.label, Label) else None
            group = label.name if label else ASAP_NO_GROUP
            if label:
                groups[label.name] = label.color
            color = label.color if label else _PLAIN_COLOR
            head = f"Name={attribute(roi.name or f'Annotation {index}')}"
            tail = f"PartOfGroup={attribute(group)} Color={attribute(color)}"
            for kind, points in _pieces(roi.geometry):
                yield _annotation(f'{head} Type="{kind}" {tail}', points).encode()
        yield b"\t</Annotations>\n\t<AnnotationGroups>\n"
        for group, color in groups.items():
            names = f"Name={attribute(group)} PartOfGroup={attribute(ASAP_NO_GROUP)}"
            yield f"\t\t<Group {names} Color={attribute(color)}><Attributes/></Group>\n".encode()
        yield b"\t</AnnotationGroups>\n</ASAP_Annotations>\n"


def _pieces(geometry: GeoJsonGeometry) -> list[tuple[str, list[list[float]]]]:
    kind = mark_kind(geometry)
    if kind is None:
        return [("Polygon", ring) for ring in single_rings(geometry)]
    parts = mark_parts(geometry)
    if kind == RoiKind.LINE:
        return [(_LINE, list(leg)) for line in parts for leg in pairwise(line)]
    points = [point for part in parts for point in part]
    return [("Dot" if len(points) == 1 else "PointSet", points)]


def _annotation(attributes: str, coordinates: list[list[float]]) -> str:
    points = "".join(
        f'<Coordinate Order="{order}" X="{x!r}" Y="{y!r}"/>'
        for order, (x, y) in enumerate(coordinates)
    )
    return f"\t\t<Annotation {attributes}><Coordinates>{points}</Coordinates></Annotation>\n"


def _feature(element: Any, colors: dict[str, str | None]) -> Feature | Problem:
    kind = element.get("Type", "")
    if kind not in {*_AREAS, *_POINTS, _LINE}:
        return Problem(
            f"a {kind[:40] or 'nameless type'} of ASAP is not read", _label_name(element)
        )
    points: list[tuple[float, list[float]]] = []
    for place, point in enumerate(element.iter("Coordinate")):
        try:
            order = float(point.get("Order", place))
            points.append((order, [float(point.get("X", "")), float(point.get("Y", ""))]))
        except ValueError:
            return Problem(f"coordinate {place} has no numbers X and Y", _label_name(element))
    points.sort(key=lambda numbered: numbered[0])
    name, notes = name_read(element.get("Name", ""))
    group = one_line(element.get("PartOfGroup", ""))
    label = "" if group == ASAP_NO_GROUP else group
    if kind == "Spline":
        notes = (*notes, "a spline was converted to the polygon of its points")
    return Feature(
        id=None,
        geometry=_geometry(kind, [xy for _, xy in points]),
        t=0,
        name=name,
        label=label,
        color=colors.get(label) or _color(element.get("Color")),
        notes=notes,
    )


def _label_name(element: Any) -> str:
    name, _ = name_read(element.get("Name", ""))
    return feature_description(
        element.get("Type", ""), name, one_line(element.get("PartOfGroup", ""))
    )


def _geometry(kind: str, points: list[list[float]]) -> GeoJsonGeometry:
    if kind in _POINTS:
        return {"type": "MultiPoint", "coordinates": points}
    if kind == _LINE:
        return {"type": "LineString", "coordinates": points}
    return {"type": "Polygon", "coordinates": [closed(points)]}


def _color(value: str | None) -> str | None:
    return value.lower() if value and _COLOR.match(value) else None
