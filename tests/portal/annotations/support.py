"""What several tests of annotations use."""

from __future__ import annotations

import json
import math
from typing import Any

from portal.annotations.formats import WRITERS, ExportChoices
from portal.annotations.selectors import roi_export
from portal.archive.models import Canvas
from portal.core.models import Event
from portal.labs.models import Membership, User

LABELS = "/api/v1/labels/"


def polygon(*ring: tuple[float, float]) -> dict[str, Any]:
    """A GeoJSON polygon of one ring, closed or not."""
    return {"type": "Polygon", "coordinates": [[list(vertex) for vertex in ring]]}


def box(left: float, top: float, right: float, bottom: float) -> dict[str, Any]:
    """A GeoJSON rectangle."""
    return polygon((left, top), (right, top), (right, bottom), (left, bottom), (left, top))


def ellipse(x: float, y: float, radius_x: float, radius_y: float) -> dict[str, Any]:
    """A GeoJSON ellipse of 64 vertices."""
    turns = [2 * math.pi * step / 64 for step in range(64)]
    return polygon(
        *(
            (round(x + radius_x * math.cos(t), 2), round(y + radius_y * math.sin(t), 2))
            for t in turns
        )
    )


def names(**filters: Any) -> list[str]:
    """The names of events, in the order in which they happened."""
    return list(Event.objects.filter(**filters).order_by("id").values_list("name", flat=True))


def feature(geometry: Any = None, *, id: str | None = None, **properties: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "Feature",
        "geometry": geometry or box(10, 10, 90, 80),
        "properties": {"objectType": "annotation", **properties},
    }
    return made | ({"id": id} if id else {})


def collection(*features: Any) -> dict[str, Any]:
    """A GeoJSON document of these features."""
    return {"type": "FeatureCollection", "features": list(features)}


def _anybody(canvas: Canvas) -> User:
    member = Membership.objects.select_related("user").filter(lab_id=canvas.lab_id).first()
    assert member is not None, "nobody of this lab could ask for a file"
    return member.user


def exported(canvas: Canvas) -> dict[str, Any]:
    """What the canvas exports, read back."""
    writer, choices = WRITERS["geojson"], ExportChoices()
    pieces = roi_export(_anybody(canvas), canvas, writer=writer, choices=choices)
    document: dict[str, Any] = json.loads(b"".join(pieces))
    return document


def statuses(report: Any) -> list[str]:
    """What became of each feature of an import."""
    return [item.status for item in report.items]
