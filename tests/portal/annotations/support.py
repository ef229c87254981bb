"""Helpers shared by tests of annotations."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from portal.annotations.formats.registry import WRITERS
from portal.annotations.formats.types import ExportChoices
from portal.annotations.models import RoiImport
from portal.annotations.selectors.rois import roi_export
from portal.annotations.services.reports import ImportReport
from portal.archive.models import Canvas
from portal.core import events
from portal.core.models import Event
from portal.core.registry import Registry
from portal.labs.models import Membership, User

LABELS = "/api/v1/labels/"


def without_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what other apps do when ROIs are saved, except for the audit log."""
    every = Registry({events.EVERY: events.BATCH_HANDLERS.all(events.EVERY)})
    monkeypatch.setattr(events, "BATCH_HANDLERS", every)


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
    """GeoJSON document that the canvas exports."""
    writer, choices = WRITERS["geojson"], ExportChoices()
    pieces = roi_export(_anybody(canvas), canvas, writer=writer, choices=choices)
    document: dict[str, Any] = json.loads(b"".join(pieces))
    return document


def statuses(report: Any) -> list[str]:
    """Status of each feature of an import."""
    return [item.status for item in report.items]


def import_of(report: ImportReport) -> RoiImport:
    """The import that a report is of."""
    assert report.import_id is not None, "nothing was changed"
    return RoiImport.objects.get(pk=report.import_id)
