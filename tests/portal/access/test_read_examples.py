"""Every GET of the schema has an example whose request gives the documented response.

The answers were written down in the tests' world: ``TESSERA_RENEW_EXAMPLES=1`` with this
file renews them. Ids, times and addresses are swapped for those that the schema shows.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.cache import cache
from django.db import transaction
from django.http.response import HttpResponseBase
from drf_spectacular.generators import SchemaGenerator

from ml.imaging.dicom.uids import instance_id, uid_of
from portal.operations.examples import READS_FILE, read_examples, shown_id
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import endpoints, filled
from tests.portal.access.furnished import furnish
from tests.portal.schema_validation import schema_errors

pytestmark = pytest.mark.slow

RENEW = os.environ.get("TESSERA_RENEW_EXAMPLES") == "1"
_CASE, _CANVAS, _ROI = shown_id("cases"), shown_id("canvases"), shown_id("rois")
SRGB = "6f6fe5cc53cd24ceeb7997fb24ce2889"
"""By which metadata name the profile of a slide that has none."""
QUERIES: dict[str, dict[str, Any]] = {  # required parameters of a GET
    "mosaics_estimate_retrieve": {"video": shown_id("videos"), "start_s": 0, "end_s": 1},
    "mosaics_frames_at_point_retrieve": {"x": 30, "y": 30},
    "mosaics_roi_frames_retrieve": {"roi": shown_id("mosaic_rois")},
    "studies_findings_list": {"canvas": shown_id("video_canvases")},
    "video_events_list": {"canvas": shown_id("video_canvases")},
    "video_events_names_retrieve": {"canvas": shown_id("video_canvases")},
    "videos_clip": {"first_index": 2, "last_index": 5},
    "canvas_roi_file_export": {"format": "geojson"},
    "label_properties_list": {"canvas": _CANVAS},
    "rois_list": {
        "canvas": _CANVAS,
        "left": 0,
        "top": 0,
        "right": 400,
        "bottom": 400,
        "limit": 100,
    },
    "cases_list": {"q": "colon", "ordering": "-created_at", "page_size": 20},
    "slides_list": {"case": _CASE, "state": "ready"},
    "jobs_list": {"state": "queued", "person": "me"},
    "unannotated": {"kind": "histology"},
    "events": {"types": "roi.saved,job.ended"},
}
PATHS: dict[str, dict[str, str]] = {  # what its address names, where it is not the first there is
    "cases_bulk_export_file": {"id": shown_id("exports")},
    "dicom_bulk_data": {"digest": SRGB},
    **{
        name: {"id": shown_id("built_mosaics")}
        for name in (
            *("mosaics_frames_at_point_retrieve", "mosaics_image.png_retrieve"),
            *("mosaics_layers_.png_retrieve", "mosaics_manifest.json_retrieve"),
            *("mosaics_projected_rois_retrieve", "mosaics_pyramid.tif_retrieve"),
            *("mosaics_roi_frames_retrieve", "mosaics_frames_list", "mosaics_retrieve"),
        )
    },
    "query_explanation": {"other_id": shown_id("other_rois")},
    "roi_explanation": {"other_id": shown_id("other_rois")},
}
STANDARDS = ("canvas_annotations", "canvas_image", "canvas_manifest", "case_", "dicom_")
WITHOUT_FIELDS = {  # JSON that is not cut to `fields`: documents of standards, and files
    "canvas_roi_file_export",
    "mosaics_manifest.json_retrieve",
}
NOT_PAGED = {  # lists that do not go by cursor, and why; docs/guide/rest/rules.md says so too
    "map_near_duplicates": "ranked again, by start and limit",
    "map_unlike": "ranked again, by start and limit",
    "unannotated": "ranked again, by start and limit",
    "query_similar": "ranked again",
    "report_again": "ranked again",
    "roi_similar_regions": "ranked again",
    "roi_similar": "ranked again",
    "mosaics_frames_at_point_retrieve": "ranked again, at most its limit",
    "mosaics_projected_rois_retrieve": "what one frame or component shows, bounded",
    "mosaics_roi_frames_retrieve": "ranked again, at most 200",
    "videos_frames_retrieve": "a table that never changes, by index",
    "followups_retrieve": "the frames that one follow-up found",
    "reports_retrieve": "the results that one report froze, at most 50",
}
OWN_TAGS = {"rois_retrieve", "video_events_retrieve", "canvases_live_retrieve"}
BY_SESSION = ("tokens_",)
LONGEST = 12  # of a list of numbers in an example
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DAY, _SHOWN_DAY = re.compile(r"(?<=\")\d{4}-\d\d-\d\d(?=\")"), "2026-12-01"
_SHOWN_TIME = "2026-03-02T09:30:00Z"


class _Shown(dict[str, str]):
    """The id that the schema shows for each word."""

    def __missing__(self, word: str) -> str:
        self[word] = shown_id(word)
        return self[word]


SHOWN = _Shown(instances=str(instance_id(uuid.UUID(shown_id("canvases")), 1)))


@pytest.fixture(scope="module")
def scene(scene: Scene, django_db_blocker: Any) -> Scene:
    """With what some addresses need to have an answer."""
    with django_db_blocker.unblock():
        return replace(scene, ids=scene.ids | furnish(scene))


@pytest.fixture(scope="module")
def document(django_db_setup: None, django_db_blocker: Any) -> dict[str, Any]:
    with django_db_blocker.unblock():
        generator: Any = SchemaGenerator
        schema = generator().get_schema(request=None, public=True)
    data: dict[str, Any] = json.loads(json.dumps(schema, default=str))
    return data


def _reads(document: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    """Path and operation of each GET."""
    return {
        operations["get"]["operationId"]: (path, operations["get"])
        for path, operations in document["paths"].items()
        if "get" in operations
    }


def test_every_read_has_an_example_and_every_example_a_read(document: dict[str, Any]) -> None:
    known = read_examples()
    assert RENEW or set(known) == set(_reads(document)), "renew them"
    for name, (_, operation) in _reads(document).items():
        for parameter in operation.get("parameters", []):
            assert parameter["in"] != "path" or "example" in parameter, (name, parameter["name"])
        answers = [*_answers(operation, 200).values(), *_answers(operation, 202).values()]
        assert any("examples" in answer for answer in answers) or not answers, name


def test_every_list_has_a_cursor_or_a_reason(document: dict[str, Any]) -> None:
    lists, paged = set(), set()
    for name, (_, operation) in _reads(document).items():
        response = _answers(operation).get("application/json", {}).get("schema", {})
        response = _resolved(document, response)
        parameters = {row["name"] for row in operation.get("parameters", [])}
        within = response.get("properties", {})
        arrays = [response, within.get("results", {}), within.get("frames", {})]
        is_list = any(array.get("type") == "array" for array in arrays) or "limit" in parameters
        if is_list and not name.startswith(STANDARDS):
            lists.add(name)
        if "cursor" in parameters:
            paged.add(name)
            assert "page_size" in parameters
            assert {"next", "previous", "results"} <= set(response["required"]), name
        assert not {"page", "offset"} & parameters or name.startswith(STANDARDS), name
    assert len(paged) > 30
    assert lists - paged == set(NOT_PAGED)


def _resolved(document: Any, schema: Any) -> Any:
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


def test_every_read_is_answered_like_its_example(scene: Scene, document: dict[str, Any]) -> None:
    wrong: dict[str, Any] = {}
    fresh: dict[str, Any] = {}
    known = {} if RENEW else read_examples()
    for name, (path, operation) in sorted(_reads(document).items()):
        example = known.get(name) or _default_example(path, name)
        answer = _request(scene, name, path, example)
        fresh[name] = example
        kind = answer.headers["Content-Type"].partition(";")[0]
        if answer.status_code >= 400:
            wrong[name] = (answer.status_code, json.loads(_body(answer)).get("code"))
            continue
        response = _answers(operation, answer.status_code).get(kind)
        if response is None:
            continue
        live = json.loads(_body(answer))
        shown = known[name]["answer"] if name in known else _shown(live, scene.ids)
        problems = list(schema_errors(document, response["schema"], live))
        problems += list(schema_errors(document, response["schema"], shown))
        problems += [] if _keys(live) == _keys(shown) else [f"{_keys(live)} != {_keys(shown)}"]
        if problems:
            wrong[name] = problems[:3]
        fresh[name] = example | {"status": answer.status_code, "answer": shown}
    if RENEW:
        READS_FILE.write_text(json.dumps(fresh, indent=1, ensure_ascii=False) + "\n")
    assert wrong == {}


def test_every_read_can_be_sparse_and_is_304_where_it_is_known(
    scene: Scene, document: dict[str, Any]
) -> None:
    """Requests one field, an unknown field, and the ETag of each GET with ``fields``."""
    wrong: dict[str, Any] = {}
    requested = 0
    for name, (path, operation) in sorted(_reads(document).items()):
        known = {parameter["name"]: parameter for parameter in operation.get("parameters", [])}
        if "fields" not in known:
            has_all_fields = name in WITHOUT_FIELDS or name.startswith(STANDARDS)
            if _answers(operation) and not has_all_fields:
                wrong[name] = "has no fields, and is no document of a standard"
            continue
        example = read_examples()[name]
        first = known["fields"]["schema"]["items"]["enum"][0]
        query = {**example["query"], "fields": [first]}
        answer = _request(scene, name, path, example | {"query": query})
        wanted = example | {"query": {**query, "fields": ["nope"]}}
        refused: Any = _request(scene, name, path, wanted)
        if refused.status_code != 400 or b"unknown-field" not in refused.content:
            wrong[name] = refused.content[:200]
        if answer.status_code == 202:
            continue
        body = json.loads(_body(answer))
        is_page = "cursor" in known
        rows = body["results"] if is_page else body if isinstance(body, list) else [body]
        if answer.status_code != 200 or any(set(row) - {first} for row in rows):
            wrong[name] = body
        if name in OWN_TAGS:
            continue
        again = _request(
            scene, name, path, example | {"query": query}, {"If-None-Match": answer["ETag"]}
        )
        if again.status_code != 304:
            wrong[name] = again.status_code
        requested += 1
    assert wrong == {}
    assert requested > 60


def _answers(operation: Any, status: int = 200) -> dict[str, Any]:
    """The kinds of JSON that a read is answered with."""
    content = operation["responses"].get(str(status), {}).get("content", {})
    return {kind: result for kind, result in content.items() if kind.endswith("json")}


def _default_example(path: str, name: str) -> dict[str, Any]:
    """Request of a path, with the ids that the schema shows."""
    form = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+?)", re.escape(path)))
    result = [
        match.groupdict()
        for view, parameters in endpoints()
        if view.startswith("api:") and len(parameters) == form.groups
        if (match := form.fullmatch(filled(view, parameters, SHOWN)))
    ]
    return {"path": result[0] | PATHS.get(name, {}), "query": QUERIES.get(name, {})}


def _request(
    scene: Scene,
    name: str,
    path: str,
    example: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> HttpResponseBase:
    address = path.format(**example["path"])
    query = {
        name: ",".join(value) if isinstance(value, list) else value
        for name, value in example["query"].items()
    }
    address += f"?{urlencode(query)}" if query else ""
    for there, here in _pairs(scene.ids):
        address = address.replace(there, here)
    cache.clear()
    with transaction.atomic():
        by_session = name.startswith(BY_SESSION)
        client = scene.cast.client("manager" if by_session else "write_token")
        answer = client.get(address, headers=dict(headers or {}))
        transaction.set_rollback(True)
    return answer


def _pairs(ids: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each id as the schema shows it, and as it is here; as a UID too."""
    for word, here in ids.items():
        yield SHOWN[word], here
    for word in ("cases", "canvases", "instances"):
        yield uid_of(uuid.UUID(SHOWN[word])), uid_of(uuid.UUID(ids[word]))


def _body(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def _shown(live: Any, ids: Mapping[str, str]) -> Any:
    """An answer as the schema shows it: short, and of no machine and no day."""
    text = json.dumps(_short(live), ensure_ascii=False)
    for there, here in _pairs(ids):
        text = text.replace(here, there)
    known, others = set(SHOWN.values()), 0
    for fromkey in dict.fromkeys(_UUID.findall(text)):
        if fromkey not in known:
            others += 1
            text = text.replace(fromkey, shown_id(f"other {others}"))
    text = text.replace("http://testserver", "https://tessera.example.org")
    text = re.sub(r"\bW-(\d)\b", r"S26-0009\1", text.replace("access.example", "hospital.example"))
    return json.loads(_DAY.sub(_SHOWN_DAY, _TIME.sub(_SHOWN_TIME, text)))


def _short(value: Any) -> Any:
    """Two objects of a list are enough, and some of its numbers."""
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list):
        is_of_objects = bool(value) and isinstance(value[0], dict)
        return [_short(item) for item in value[: 2 if is_of_objects else LONGEST]]
    return value


def _keys(value: Any) -> set[str]:
    """The names that an answer has, of a list those of its first."""
    if isinstance(value, list):
        return _keys(value[0]) if value else set()
    if isinstance(value, dict) and isinstance(value.get("results"), list):
        return set(value) | _keys(value["results"])
    return set(value) if isinstance(value, dict) else set()
