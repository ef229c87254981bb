"""Deeply nested values are rejected with a message; the rest of the document is imported."""

from __future__ import annotations

import io
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from portal.annotations.models import Roi
from portal.annotations.services.exchange import roi_import, roi_import_preview
from portal.annotations.services.reading import file_source
from portal.archive.models import Canvas
from portal.core.errors import PortalError
from portal.labs.models import User
from tests.portal.annotations.staging import run, stage, state
from tests.portal.annotations.support import box, collection, feature

pytestmark = pytest.mark.django_db
DEPTHS = (40, 300, 450, 500, 600, 700, 800, 850, 900, 950, 10_000)
"""Up to the stack that Python has, and beyond it."""
HERE = "@here@"
PLACES: dict[str, dict[str, Any]] = {
    "coordinates": {"geometry": {"type": "Polygon", "coordinates": HERE}},
    "a vertex": {"geometry": {"type": "Polygon", "coordinates": [[HERE, [1, 2], [3, 4]]]}},
    "an x": {"geometry": {"type": "Polygon", "coordinates": [[[HERE, 1], [1, 2], [3, 4]]]}},
    "a point": {"geometry": {"type": "Point", "coordinates": HERE}},
    "the kind": {"geometry": {"type": HERE, "coordinates": [1, 2]}},
    "a collection": {"geometry": {"type": "GeometryCollection", "geometries": [{"type": HERE}]}},
    "the plane": {"geometry": box(1, 1, 9, 9) | {"plane": {"z": HERE}}},
    "the time": {"geometry": box(1, 1, 9, 9) | {"plane": {"t": HERE}}},
    "the id": {"id": HERE},
    "a nucleus": {"nucleusGeometry": HERE},
    "the properties": {"properties": HERE},
    "the object type": {"properties": {"objectType": HERE}},
    "the name": {"properties": {"name": HERE}},
    "the class": {"properties": {"classification": HERE}},
    "a colour": {"properties": {"classification": {"name": "a", "color": HERE}}},
    "names": {"properties": {"classification": {"names": [HERE]}}},
    "measurements": {"properties": {"measurements": HERE}},
    "a measurement": {"properties": {"measurements": [{"name": HERE, "value": HERE}]}},
    "metadata": {"properties": {"metadata": HERE}},
    "a text of metadata": {"properties": {"metadata": {"key": HERE}}},
    "a track": {"properties": {"metadata": {"tessera.track": HERE}}},
}


def nested(depth: int, kind: str) -> str:
    opening, closing = {"list": ("[", "]"), "object": ('{"a":', "}")}[kind]
    return opening * depth + "1" + closing * depth


def deep(place: dict[str, Any], depth: int, kind: str) -> bytes:
    odd = feature(box(1, 1, 9, 9)) | place
    text = json.dumps(collection(feature(box(2, 2, 8, 8)), odd, feature(box(3, 3, 7, 7))))
    return text.replace(f'"{HERE}"', nested(depth, kind)).encode()


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_document_of_any_depth_is_read_or_refused(
    canvas: Canvas, annotator: User, place: dict[str, Any], kind: str
) -> None:
    for depth in DEPTHS:
        source = file_source(io.BytesIO(deep(place, depth, kind)), canvas)
        try:
            report = roi_import_preview(canvas=canvas, user=annotator, document=source)
        except PortalError as refused:
            assert "nested too deeply" in refused.message
            assert depth > 600
            continue
        assert report.total == 3 and report.count("created") >= 2
        assert report.count("created") == 3 or report.items[1].reason


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("where", ["crs", "type", "before"])
def test_deep_foreign_members_do_not_crash_the_import(
    canvas: Canvas, annotator: User, where: str, kind: str
) -> None:
    for depth in DEPTHS:
        document = {where: HERE} | collection(feature(box(2, 2, 8, 8))) | {where: HERE}
        text = json.dumps(document).replace(f'"{HERE}"', nested(depth, kind))
        try:
            source = file_source(io.BytesIO(text.encode()), canvas, format_name="geojson")
            report = roi_import_preview(canvas=canvas, user=annotator, document=source)
        except PortalError as refused:
            assert refused.message.startswith("GeoJSON: ")
        else:
            assert where == "before" and report.count("created") == 1


def test_stored_foreign_members_can_be_read_again(canvas: Canvas, annotator: User) -> None:
    """A value at the depth limit would exceed it inside a list."""
    flat = {"properties": {"objectType": "annotation", "measurements": {"a": HERE}}}
    for depth in (*range(1, 20), *DEPTHS):
        flat["geometry"] = box(1, 1, 9 + depth, 9)  # each an object of its own
        try:
            source = file_source(io.BytesIO(deep(flat, depth, "object")), canvas)
            roi_import(canvas=canvas, user=annotator, document=source)
        except PortalError:
            continue
    stored = [json.dumps(roi.foreign).count("{") for roi in Roi.objects.all()]
    assert 5 < max(stored) < 20


def test_a_job_with_deep_nesting_fails_and_writes_nothing(
    canvas: Canvas, annotator: User, storage: Path
) -> None:
    row = run(stage(canvas, annotator, deep(PLACES["metadata"], 10_000, "object")))
    from portal.jobs.models import Job

    assert (state(row), Roi.objects.count()) == ("failed", 0)
    assert "nested too deeply" in Job.objects.get(pk=row.job_id).error_message


@pytest.mark.parametrize("kind", ["list", "object"])
def test_over_rest_a_deep_body_is_the_callers_mistake(
    canvas: Canvas, annotator: User, api_as: Any, kind: str
) -> None:
    api, url = api_as(annotator), "/api/v1/rois/"
    fields = {
        "geometry": HERE,
        "properties": HERE,
        "label": HERE,
        "name": HERE,
        "track": HERE,
        "id": HERE,
    }
    for name in fields:
        for depth in DEPTHS:
            body = {"canvas": str(canvas.pk), "geometry": box(1, 1, 9, 9), name: HERE}
            text = json.dumps(body).replace(f'"{HERE}"', nested(depth, kind))
            answer = api.post(url, text, content_type="application/json")
            assert answer.status_code in {400, 422}, (name, depth, answer.content[:200])
    corner = {"type": "Polygon", "coordinates": [[[HERE, 1], [1, 2], [3, 4]]]}
    for depth in DEPTHS:
        body = {"canvas": str(canvas.pk), "geometry": corner, "id": str(uuid.uuid4())}
        text = json.dumps(body).replace(f'"{HERE}"', nested(depth, kind))
        answer = api.post(url, text, content_type="application/json")
        assert answer.status_code == 400, (depth, answer.content[:200])
    assert not Roi.objects.exists()
