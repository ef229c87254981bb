"""Every example of the schema is sent unchanged, and the response matches the schema."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.http.response import HttpResponseBase
from django.urls import resolve
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from portal.annotations.models import ImportStage, Label, RoiImport
from portal.annotations.services.rois import roi_create
from portal.annotations.services.staged import import_folder
from portal.archive.models import Video
from portal.archive.models.shares import today
from portal.jobs.models import Job, JobState
from portal.labs.delegation import BY_A_PERSON
from portal.operations.examples import REQUESTS, shown_id
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import filled
from tests.portal.access.furnished import prepare
from tests.portal.schema_validation import schema_errors

ERASED = "W-9"  # the case of the scene that nothing else is about
METHODS = {"get", "post", "put", "patch", "delete"}
HEADERS: dict[str, dict[str, str]] = {  # of all other changes: what is there
    name: {"If-Match": '"1"'}
    for name in ("rois_partial_update", "rois_track_create", "video_events_partial_update")
} | {"rois_restore_create": {"If-Match": '"2"'}}


@pytest.fixture(scope="module")
def document(django_db_setup: None, django_db_blocker: Any) -> dict[str, Any]:
    with django_db_blocker.unblock():
        schema = SchemaGenerator().get_schema(request=None, public=True)
    return json.loads(json.dumps(schema, default=str))


def _bodies(document: dict[str, Any]) -> dict[str, tuple[str, str, Any, Any]]:
    """Method, path, operation and schema of each operation that takes JSON."""
    return {
        operation["operationId"]: (method, path, operation, taken["application/json"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method in METHODS
        and "application/json" in (taken := operation.get("requestBody", {}).get("content", {}))
    }


def test_every_body_has_an_example_and_every_example_a_body(document: dict[str, Any]) -> None:
    bodies = _bodies(document)
    assert set(bodies) == set(REQUESTS), "name them in portal/operations/examples.py"
    for name, (_, _, _, taken) in bodies.items():
        (example,) = taken["examples"].values()
        assert list(schema_errors(document, taken["schema"], example["value"])) == [], name


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_every_example_is_answered_according_to_the_schema(
    scene: Scene, document: dict[str, Any], name: str
) -> None:
    method, path, operation, taken = _bodies(document)[name]
    cache.clear()
    with transaction.atomic():
        ids = _known(scene, name)
        shown = {shown_id(word): value for word, value in ids.items()} | {"S26-00094": ERASED}
        (example,) = taken["examples"].values()
        body = json.loads(_swapped(json.dumps(example["value"]), shown))
        answer = _sent(scene, method, path, body, ids, HEADERS.get(name, {"If-Match": "*"}))
        transaction.set_rollback(True)
    assert answer.status_code < 300, answer.content
    result = operation["responses"][str(answer.status_code)]
    if "content" not in result:
        assert answer.content == b""
        return
    kind = answer.headers["Content-Type"].partition(";")[0]
    assert list(schema_errors(document, result["content"][kind]["schema"], answer.json())) == []


def _known(scene: Scene, name: str) -> dict[str, str]:
    """Ids of the world, and of what only this example is about."""
    manager = scene.cast.users["manager"]
    video = Video.objects.get(pk=scene.ids["videos"])
    ring = [[5, 5], [60, 5], [60, 50], [5, 50], [5, 5]]
    square = {"type": "Polygon", "coordinates": [ring]}
    assert video.canvas is not None
    region = roi_create(canvas=video.canvas, user=manager, geometry=square, frame_index=0).roi
    if name == "labels_order":  # all there are
        others = Label.objects.filter(lab=video.lab).exclude(pk=scene.ids["labels"])
        others.update(retired_at=timezone.now())
    if name == "roi_imports_start_create":
        RoiImport.objects.filter(pk=scene.ids["roi-imports"]).update(stage=ImportStage.PREVIEWED)
        document = import_folder(RoiImport.objects.get(pk=scene.ids["roi-imports"])) / "document"
        document.parent.mkdir(parents=True, exist_ok=True)
        document.write_text("{}")
    waiting = Job.objects.filter(lab=video.lab, state=JobState.QUEUED).first()
    assert waiting is not None
    made = {
        "people": str(scene.cast.users["annotator"].pk),
        "video_rois": str(region.pk),
        "jobs": str(waiting.pk),
    }
    return scene.ids | made | prepare(scene, name) | _addressed(scene, name, str(region.pk))


def _addressed(scene: Scene, name: str, region: str) -> dict[str, str]:
    """Ids for the URL that differ from the first object of each kind."""
    known = {
        "rois_track_create": {"rois": region},
        "rois_restore_create": {"rois": scene.ids["deleted_rois"]},
    }
    return known.get(name, {})


def _swapped(text: str, shown: Mapping[str, str]) -> str:
    for there, here in shown.items():
        text = text.replace(there, here)
    return text.replace("2099-12-31", str(today() + timedelta(days=9)))


def _sent(
    scene: Scene,
    method: str,
    path: str,
    body: Any,
    ids: Mapping[str, str],
    headers: Mapping[str, str],
) -> HttpResponseBase:
    address = _address(path, ids)
    act = (resolve(address.partition("?")[0]).view_name, method.upper())
    by_session = act in BY_A_PERSON  # as no token may
    client = scene.cast.client("manager" if by_session else "write_token")
    return client.generic(
        method.upper(),
        address,
        json.dumps(body),
        content_type="application/json",
        headers=dict(headers),
    )


def _address(path: str, ids: Mapping[str, str]) -> str:
    """The operation's address with the world's ids in it."""
    match = resolve(re.sub(r"\{\w+\}", str(uuid.uuid4()), path))
    return filled(match.view_name, tuple(sorted(match.kwargs)), ids)
