"""Every URL gives a blinded reader the same response before and after another reader works.

The reader manages the lab, so they may see everything else there is, the audit log too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.cache import cache
from django.db import transaction
from django.http.response import HttpResponseBase

from portal.annotations.models import Roi
from portal.annotations.services.fields import RoiChanges
from portal.annotations.services.rois import roi_create, roi_delete, roi_update
from portal.archive.tiles.server import TILES
from portal.embeddings.models import Embedding
from portal.jobs.models import Job
from portal.operations.audit_middleware import RECENT
from portal.reader_studies.models import Study
from portal.reader_studies.services.assignments import ReadingPlan
from portal.reader_studies.services.studies import readings_assign, study_create, study_unblind
from portal.review.services.comments import comment_add
from portal.review.services.presence import presence_note
from tests.portal.access.actors import send
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import endpoints, filled
from tests.portal.access.rules import RULES

ENDPOINTS = dict(endpoints())
SECRET = "Quixotic"
READS = sorted(name for name, rules in RULES.items() if "GET" in rules and ":" in name)
"""Without a colon: sign-in, health, figures for the operator: of no lab."""
OTHER_SOURCES = {"api:audit-list", "api:audit-head", "audit:list", "audit:export", "api:events"}
"""The log: what the sweep itself asks for is noted in it. Events: how many all labs have had."""
# Anybody's job may stand before one's own; every answer has a number of its own.
RUNNING = re.compile(
    r'(csrf\w*" value="[^"]+"|nonce="[^"]+"|hx-headers=\'[^\']+\'|\d{4}-\d\d-\d\dT[\d:.+Z]+'
    r'|"position":\d+'
    r"|Place \d+ in the queue|administrator: <code>\w+"
    r'|"(request_id|cursor|age_s|now|seen_at|last_used_at)": ?"?[^",}]+)'
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["api", "pages"])
def test_nothing_of_another_reader_is_seen(scene: Scene, kind: str) -> None:
    names = [name for name in READS if name.startswith("api:") == (kind == "api")]
    with _blind(scene) as study:
        before = {name: _text(_request(scene, name)) for name in names}
        hidden = _drawn(scene)
        secrets = [SECRET, *(str(roi.pk) for roi in hidden)]
        after = {name: _text(_request(scene, name)) for name in names}
        leaks = {name: [word for word in secrets if word in after[name]] for name in names}
        assert {name: words for name, words in leaks.items() if words} == {}
        differ = [name for name in names if after[name] != before[name]]
        assert sorted(set(differ) - OTHER_SOURCES) == []
        for roi in hidden:  # and nothing is found by its id
            ids = scene.ids | {"rois": str(roi.pk), "deleted_rois": str(roi.pk)}
            for name in names:
                if {"roi_id", "pk", "id"} & set(ENDPOINTS[name]) and "roi" in name:
                    answer = _request(scene, name, ids)
                    if str(roi.pk) in _path(name, ids):
                        assert answer.status_code == 404, name
        study_unblind(study=study, user=scene.cast.users["manager"])
        result = [name for name in names if SECRET in _text(_request(scene, name))]
        assert {"api": "api:roi-list", "pages": "annotations:measurements"}[kind] in result


@contextmanager
def _blind(scene: Scene) -> Iterator[Study]:
    """The manager and the annotator read the scene's slide blindly; rolled back."""
    manager, other = scene.cast.users["manager"], scene.cast.users["annotator"]
    cache.clear()
    TILES.clear()
    with transaction.atomic():
        study = study_create(lab=scene.world.case.lab, user=manager, name="Blind")
        canvases = [scene.world.canvas, scene.world.video.canvas]
        plan = ReadingPlan(canvases=canvases, people=[manager, other])
        readings_assign(study=study, user=manager, plan=plan)
        RECENT.clear()
        yield study
        transaction.set_rollback(True)
    TILES.clear()


def _drawn(scene: Scene) -> list[Roi]:
    """All that the other reader may leave behind."""
    other, canvas = scene.cast.users["annotator"], scene.world.canvas
    ring = [[20, 20], [300, 20], [300, 300], [20, 20]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    label = scene.world.label
    stored, deleted, framed = (
        roi_create(
            canvas=place, user=other, geometry=geometry, label=label, name=SECRET, frame_index=frame
        ).roi
        for place, frame in (
            (canvas, None),
            (canvas, None),
            (scene.world.video.canvas, 2),
        )
    )
    outline = {"type": "Polygon", "coordinates": [[*ring[:2], [310, 310], ring[0]]]}
    roi_update(roi=stored, user=other, expected_version=1, changes=RoiChanges(geometry=outline))
    comment_add(roi=stored, user=other, text=f"{SECRET}: is it?")
    roi_delete(roi=deleted, user=other, expected_version=1)
    presence_note(canvas=canvas, user=other, tab=stored.pk, view=(0, 0, 9, 9), roi_id=stored.pk)
    framed.refresh_from_db()
    encoder = scene.world.encoder
    Embedding.objects.create(
        lab=stored.lab,
        encoder=encoder,
        roi=stored,
        roi_version=stored.version,
        canvas=canvas,
        vector=b"\0" * 4 * encoder.dim,
    )
    assert Job.objects.filter(target_type="roi", target_id=stored.pk).exists()
    return [stored, deleted, framed]


def _path(name: str, ids: dict[str, str]) -> str:
    rule = RULES[name]["GET"]
    return filled(name, ENDPOINTS[name], ids) if rule.path is None else ""


def _request(scene: Scene, name: str, ids: dict[str, str] | None = None) -> HttpResponseBase:
    rule = RULES[name]["GET"]
    path = _path(name, ids or scene.ids) or (rule.path(scene, "manager") if rule.path else "")
    cache.clear()
    with transaction.atomic():  # what asking itself writes is no part of the comparison
        client = scene.cast.client("manager")
        answer = send(client, "GET", path, body=rule.body(scene), headers=rule.headers)
        if answer.streaming:
            answer.streaming_content = [b"".join(answer.streaming_content)]
        transaction.set_rollback(True)
    RECENT.clear()
    return answer


def _text(answer: HttpResponseBase) -> str:
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    text = body.decode("utf-8", "replace")
    return f"{answer.status_code} {RUNNING.sub('', text)}"
