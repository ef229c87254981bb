"""Values against the schema, outlines in and out, and the two faces of the client being one."""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import fields
from datetime import datetime
from typing import Any

import httpx2 as httpx
import numpy as np
import pytest
from drf_spectacular.generators import SchemaGenerator
from shapely.geometry import box

from tessera_client import (
    Client,
    errors,
    geojson_of,
    models,
    parsing,
    request_rules,
    results,
    shape_of,
)
from tests.client.conftest import SOURCES

SCHEMAS = {
    models.Case: "Case",
    models.Slide: "Slide",
    models.Video: "Video",
    models.Canvas: "Canvas",
    models.Level: "Level",
    models.Roi: "ListedRoi",  # a list may leave outlines out
    models.Frame: "FrameOut",
    models.Label: "Label",
    models.ThreadEntry: "ThreadEntry",
    models.Job: "Job",
    results.Learning: "Learning",
    models.Upload: "Upload",
    models.UploadItem: "UploadItem",
    models.Mosaic: "Mosaic",
    models.Component: "MosaicComponent",
    results.Similar: "Similar",
    results.Hit: "Hit",
    results.HitRoi: "HitRoi",
    results.HitCase: "HitCase",
    results.HitCanvas: "HitCanvas",
    results.Report: "Report",
    results.RegionMap: "MapDetail",
    results.LabelName: "LabelRef",
    models.Failure: "ItemError",
    models.Lab: "Lab",
    models.Membership: "Membership",
}


def _may_be_null(message: dict[str, Any]) -> bool:
    """Return whether a schema allows null, by OpenAPI 3.0 or 3.1."""
    choices = [*message.get("anyOf", ()), *message.get("oneOf", ())]
    return (
        message.get("nullable", False)
        or "null" in message.get("type", ())
        or {"type": "null"} in choices
    )


def test_every_field_is_one_of_the_schema_and_may_be_null_where_it_may_be_there():
    known = SchemaGenerator().get_schema(public=True)["components"]["schemas"]
    for kind, name in SCHEMAS.items():
        properties = known[name]["properties"]
        for field in fields(kind):
            assert field.name in properties, f"{name} has no {field.name}"
            nullable = _may_be_null(properties[field.name])
            assert ("None" in str(field.type)) == nullable, f"{name}.{field.name}"


def test_no_value_is_left_out_of_that_comparison():
    names = [
        v
        for module in (models, results)
        for v in vars(module).values()
        if isinstance(v, type) and v.__module__ == module.__name__
    ]
    assert set(names) == set(SCHEMAS)


def _spoken(text: str) -> tuple[set[tuple[str, str]], list[str]]:
    """Imports of a module, and its other statements."""
    imported, rest = set(), []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", "")
            imported |= {(module, ast.dump(alias)) for alias in node.names}
        else:
            rest.append(ast.dump(node))
    return imported, rest


@pytest.mark.parametrize("name", ["__init__", "client", "events", "requests", "rois", "uploads"])
def test_the_blocking_client_is_generated_from_the_asynchronous_one(name):
    """Renew by ``python clients/python/unasync.py``."""
    spec = importlib.util.spec_from_file_location("unasync", SOURCES / "unasync.py")
    unasync = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(unasync)
    folder = SOURCES / "src" / "tessera_client"
    written = unasync.unasync(f"{name}.py", (folder / "aio" / f"{name}.py").read_text())
    assert _spoken(written) == _spoken((folder / "sync" / f"{name}.py").read_text())


def test_outlines_go_in_as_arrays_shapes_and_geojson_and_come_back():
    square = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]
    drawn = geojson_of(np.array(square))
    assert drawn == {"type": "Polygon", "coordinates": [[*square, square[0]]]}
    assert geojson_of(drawn) == drawn
    assert shape_of(geojson_of(box(0, 0, 2, 2))).equals(shape_of(drawn))
    for wrong in (3, [[0, 0], [1, 1]], [[0, 0, 0]] * 4, "outline"):
        with pytest.raises(TypeError, match="expected GeoJSON"):
            geojson_of(wrong)


def test_values_are_parsed_with_times_and_nesting_and_name_missing_fields():
    data = {"id": "j", "kind": "k", "title": "t", "state": "queued", "outcome": "", "phase": ""}
    job = parsing.parse(
        models.Job,
        {**data, "progress": {}, "seconds_left": None, "target_id": None, "error": None, "new": 1},
    )
    assert not job.is_over
    upload = {"id": "u", "case": "c", "filename": "f", "state": "stored", "offset": 1}
    item = {"id": "s", "kind": "slide", "name": "n"}
    parse = parsing.parse(models.Upload, {**upload, "size_bytes": 1, "error": None, "item": item})
    assert parse.item == models.UploadItem("s", "slide", "n")
    with pytest.raises(TypeError, match="progress"):
        parsing.parse(models.Job, data)
    assert parsing._value(datetime, "2026-01-02T03:04:05Z").year == 2026


def test_an_answer_that_is_no_problem_json_still_has_its_kind():
    error = errors.problem(503, None)
    assert isinstance(error, errors.BusyError) and "503" in str(error)


def test_a_post_that_was_lost_or_still_runs_is_sent_again_under_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_rules, "FIRST_PAUSE_S", 0.0)
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers["Idempotency-Key"])
        if len(sent) == 1:
            raise httpx.ReadError("the connection was lost")
        if len(sent) == 2:
            return httpx.Response(
                409, json={"code": "request-running"}, headers={"Retry-After": "0"}
            )
        return httpx.Response(201, json={"done": True})

    with Client("http://portal.example", "t", transport=httpx.MockTransport(answer)) as tessera:
        assert tessera.request("POST", "shares/1/end/").json() == {"done": True}
        assert len(sent) == 3 and len(set(sent)) == 1
        tessera.request("POST", "shares/1/end/")
    assert len(set(sent)) == 2, "another call is another request"


def test_a_change_sends_the_etag_it_is_based_on() -> None:
    case = {"id": "1", "organ": "colon"}
    sent: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=case, headers={"ETag": '"a.1"'})
        sent.append(request.headers.get("If-Match"))
        if sent[-1] != '"a.1"':
            now = {"code": "stale-version", "detail": "x", "current": case | {"organ": "lung"}}
            return httpx.Response(412, json=now)
        return httpx.Response(200, json=case | {"organ": "skin"}, headers={"ETag": '"b.1"'})

    with Client("http://portal.example", "t", transport=httpx.MockTransport(answer)) as tessera:
        seen = tessera.read("cases/1/")
        changed = tessera.change(seen, organ="skin")
        assert (changed.value["organ"], changed.tag) == ("skin", '"b.1"')
        with pytest.raises(errors.ConflictError) as refused:
            tessera.change(changed, organ="skin")
    assert refused.value.data["current"]["organ"] == "lung"
    assert sent == ['"a.1"', '"b.1"']


def test_an_object_without_an_etag_is_not_changed_unseen() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"id": "1"}))
    with (
        Client("http://portal.example", "t", transport=transport) as tessera,
        pytest.raises(errors.TesseraError, match="no ETag"),
    ):
        tessera.read("jobs/1/")
