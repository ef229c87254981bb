"""ASAP's XML: annotations of one ring each, in groups with colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

from portal.annotations.formats.pieces import closed, single_rings
from portal.annotations.formats.seams import ExportChoices, Plane, Rois
from portal.annotations.formats.sniffing import root_name
from portal.annotations.formats.xml import attribute, elements
from portal.annotations.models import Label
from portal.annotations.qupath import Feature, Problem, name_read, one_line

_AREAS = ("Polygon", "Rectangle", "Spline")
_COLOR = re.compile(r"#[0-9a-fA-F]{6}$")
_NO_GROUP, _PLAIN_COLOR = "None", "#F4FA58"  # what ASAP itself writes


class Asap:
    """ASAP 1.9 - 2.x, both ways."""

    name, title = "asap", "ASAP XML"
    suffix, media_type = ".xml", "application/xml"
    for_video = True

    def sniff(self, head: bytes) -> bool:
        """By its root element."""
        return root_name(head) == "ASAP_Annotations"

    def read(self, stream: IO[bytes], plane: Plane) -> Iterator[Any]:
        """Polygons, rectangles and splines; a spline by the points it goes through."""
        colors = {
            one_line(group.get("Name", "")): _color(group.get("Color"))
            for group in elements(stream, "Group", kind="ASAP")
        }
        stream.seek(0)
        for found in elements(stream, "Annotation", kind="ASAP"):
            yield _feature(found, colors)

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """One annotation for each ring; groups are labels."""
        groups: dict[str, str] = {}
        yield b'<?xml version="1.0" encoding="UTF-8"?>\n<ASAP_Annotations>\n\t<Annotations>\n'
        for index, roi in enumerate(rois()):
            label = roi.label if isinstance(roi.label, Label) else None
            group = label.name if label else _NO_GROUP
            if label:
                groups[label.name] = label.color
            color = label.color if label else _PLAIN_COLOR
            for ring in single_rings(roi.geometry):
                yield _annotation(roi.name or f"Annotation {index}", group, color, ring).encode()
        yield b"\t</Annotations>\n\t<AnnotationGroups>\n"
        for group, color in groups.items():
            named = f"Name={attribute(group)} PartOfGroup={attribute(_NO_GROUP)}"
            yield f"\t\t<Group {named} Color={attribute(color)}><Attributes/></Group>\n".encode()
        yield b"\t</AnnotationGroups>\n</ASAP_Annotations>\n"


def _annotation(name: str, group: str, color: str, ring: list[list[float]]) -> str:
    points = "".join(
        f'<Coordinate Order="{order}" X="{x!r}" Y="{y!r}"/>' for order, (x, y) in enumerate(ring)
    )
    return (
        f'\t\t<Annotation Name={attribute(name)} Type="Polygon" PartOfGroup={attribute(group)}'
        f" Color={attribute(color)}><Coordinates>{points}</Coordinates></Annotation>\n"
    )


def _feature(found: Any, colors: dict[str, str | None]) -> Feature | Problem:
    kind = found.get("Type", "")
    if kind not in _AREAS:
        return Problem(f"a {kind[:40] or 'nameless type'} of ASAP is no area")
    points: list[tuple[float, list[float]]] = []
    for place, point in enumerate(found.iter("Coordinate")):
        try:
            order = float(point.get("Order", place))
            points.append((order, [float(point.get("X", "")), float(point.get("Y", ""))]))
        except ValueError:
            return Problem(f"coordinate {place} has no numbers X and Y")
    points.sort(key=lambda one: one[0])
    name, notes = name_read(found.get("Name", ""))
    group = one_line(found.get("PartOfGroup", ""))
    label = "" if group == _NO_GROUP else group
    if kind == "Spline":
        notes = (*notes, "a spline became the polygon of its points")
    return Feature(
        id=None,
        geometry={"type": "Polygon", "coordinates": [closed([xy for _, xy in points])]},
        t=0,
        name=name,
        label=label,
        color=colors.get(label) or _color(found.get("Color")),
        notes=notes,
    )


def _color(value: str | None) -> str | None:
    return value.lower() if value and _COLOR.match(value) else None
