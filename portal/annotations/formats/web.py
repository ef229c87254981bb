"""W3C Web Annotations, as IIIF viewers show them.

Source: Web Annotation Data Model (W3C Recommendation 2017); SVG 1.1 paths for outlines, Media
Fragments 1.0 for boxes and times.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from django.conf import settings
from django.urls import reverse

from ml.types import JsonObject
from portal.annotations.formats.types import ExportChoices, Plane, Rois
from portal.annotations.geometry import GeoJsonGeometry, polygons_of
from portal.annotations.marks import mark_kind, mark_parts
from portal.annotations.models import Label, Roi, RoiKind

CONTEXTS = ("http://www.w3.org/ns/anno.jsonld", "http://iiif.io/api/presentation/3/context.json")
_SVG = "http://www.w3.org/2000/svg"
_PLAIN_COLOR = "#3d7ea6"  # of a region without a label: the portal's own
_DOT_PX = 4  # radius of a point, which has none of its own


class WebAnnotations:
    """Page of annotations; export only."""

    name, title = "web", "W3C Web Annotations"
    suffix, media_type = ".jsonld", "application/ld+json"
    for_video = True

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """An ``AnnotationPage``; each annotation is on the canvas of the IIIF manifest."""
        base = str(settings.TESSERA_URL)
        head = {"@context": list(CONTEXTS), "id": page_address(base, plane), "type": _PAGE}
        yield json.dumps(head)[:-1].encode() + b', "items": ['
        for index, roi in enumerate(rois()):
            yield (b",\n" if index else b"\n") + json.dumps(annotation(roi, plane, base)).encode()
        yield b"\n]}\n"


_PAGE = "AnnotationPage"


def page_address(base: str, plane: Plane) -> str:
    """URL of the annotation page of a canvas."""
    return f"{base}{reverse('api:canvas-annotations', args=[plane.canvas_id])}"


def canvas_address(base: str, plane: Plane) -> str:
    """The id of the canvas in its manifest, which annotations target."""
    return f"{base}{reverse('api:canvas-manifest', args=[plane.canvas_id])}canvas"


def annotation(roi: Roi, plane: Plane, base: str) -> JsonObject:
    """An ROI as an annotation of its canvas.

    Args:
        roi: with its label.
        base: of addresses: scheme and host.
    """
    label = roi.label if isinstance(roi.label, Label) else None
    color = label.color if label else _PLAIN_COLOR
    document: JsonObject = {
        "id": f"{base}{reverse('api:roi-detail', args=[roi.pk])}",
        "type": "Annotation",
        "motivation": "tagging" if label else "highlighting",
        "created": roi.created_at.isoformat() if roi.created_at else None,
        "modified": roi.updated_at.isoformat() if roi.updated_at else None,
        "body": _bodies(roi, label),
        "target": {
            "type": "SpecificResource",
            "source": {"id": canvas_address(base, plane), "type": "Canvas"},
            "selector": _selectors(roi, plane, color),
        },
    }
    return {key: value for key, value in document.items() if value not in (None, [])}


def _bodies(roi: Roi, label: Label | None) -> list[dict[str, str]]:
    """Bodies of an annotation: a tag for the label, comments for the rest."""
    bodies = [("tagging", label.name)] if label else []
    bodies += [("identifying", roi.name)] if roi.name else []
    bodies += [("commenting", roi.description)] if roi.description else []
    bodies += [("describing", f"{key}: {value}") for key, value in sorted(roi.properties.items())]
    return [
        {"type": "TextualBody", "purpose": purpose, "value": text, "format": "text/plain"}
        for purpose, text in bodies
    ]


def _selectors(roi: Roi, plane: Plane, color: str) -> list[dict[str, str]]:
    """The outline, and its box for viewers that draw no outlines; each is the whole place."""
    svg = {"type": "SvgSelector", "value": _svg(roi.geometry, plane, color)}
    left, top = max(0, int(roi.left)), max(0, int(roi.top))
    width, height = max(1, math.ceil(roi.right) - left), max(1, math.ceil(roi.bottom) - top)
    box = f"xywh={left},{top},{width},{height}"
    if roi.frame_pts is not None and plane.time_base_s:
        box = f"t={roi.frame_pts * plane.time_base_s:.6f}&{box}"
    fragment = {
        "type": "FragmentSelector",
        "conformsTo": "http://www.w3.org/TR/media-frags/",
        "value": box,
    }
    return [svg, fragment]


def _svg(geometry: GeoJsonGeometry, plane: Plane, color: str) -> str:
    kind = mark_kind(geometry)
    style = f'fill="none" stroke="{color}" stroke-width="2" vector-effect="non-scaling-stroke"'
    if kind == RoiKind.POINT:
        shapes = "".join(
            f'<circle cx="{x:.10g}" cy="{y:.10g}" r="{_DOT_PX}" {style}/>'
            for part in mark_parts(geometry)
            for x, y in part
        )
    else:
        drawn = _lines(geometry) if kind == RoiKind.LINE else _rings(geometry)
        shapes = f'<path d="{drawn}" fill-rule="evenodd" {style}/>'
    box = f'viewBox="0 0 {plane.width_px} {plane.height_px}"'
    return f'<svg xmlns="{_SVG}" {box}>{shapes}</svg>'


def _lines(geometry: GeoJsonGeometry) -> str:
    return " ".join(_path(part) for part in mark_parts(geometry))


def _rings(geometry: GeoJsonGeometry) -> str:
    return " ".join(f"{_path(ring[:-1])}Z" for part in polygons_of(geometry) for ring in part)


def _path(points: list[list[float]]) -> str:
    return "M" + "L".join(f"{round(x, 2):.10g},{round(y, 2):.10g}" for x, y in points)
