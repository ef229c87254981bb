"""A freehand outline as long as one may be: saved, read, changed and exported vertex by vertex."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rest_framework.test import APIClient

from portal.annotations.geometry import MAX_VERTICES
from portal.annotations.models import Roi, RoiRevision
from portal.archive.models import Canvas

pytestmark = pytest.mark.django_db


def freehand(vertices: int, shift: float = 0.0) -> list[list[float]]:
    """A closed wavy ring, no two vertices alike where they are kept to two decimals."""
    turn = np.linspace(0, 2 * np.pi, vertices - 1, endpoint=False)
    away = 300 + 30 * np.sin(37 * turn)
    ring = np.stack([500 + shift + away * np.cos(turn), 400 + away * np.sin(turn)], axis=1)
    pairs: list[list[float]] = np.round(ring, 2).tolist()
    return [*pairs, pairs[0]]


@pytest.mark.slow
def test_a_hundred_thousand_vertices_are_stored(api: APIClient, canvas: Canvas) -> None:
    ring = freehand(MAX_VERTICES)
    geometry = {"type": "Polygon", "coordinates": [ring]}
    made = api.post("/api/v1/rois/", {"canvas": str(canvas.pk), "geometry": geometry})
    assert made.status_code == 201, made.content[:300]
    address = f"/api/v1/rois/{made.json()['id']}/"
    first = api.get(address).json()["geometry"]
    assert first["type"] == "Polygon" and len(first["coordinates"][0]) > 0.9 * MAX_VERTICES
    moved = {"geometry": {"type": "Polygon", "coordinates": [freehand(MAX_VERTICES, 9.0)]}}
    changed = api.patch(address, moved, headers={"If-Match": made["ETag"]})
    assert changed.status_code == 200, changed.content[:300]
    roi = Roi.objects.get()
    assert [revision.geometry for revision in RoiRevision.objects.order_by("version")] == [
        first,
        roi.geometry,
    ]
    pieces = api.get(f"/api/v1/canvases/{canvas.pk}/roi-file/").streaming_content
    (out,) = json.loads(b"".join(pieces))["features"]
    assert out["geometry"]["coordinates"] == roi.geometry["coordinates"]
