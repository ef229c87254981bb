"""Conditional writes over the whole API: ETag, If-Match, 412 and 428."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.urls import resolve

from portal.core.api.views import ApiView
from tests.portal.access.conftest import Scene
from tests.portal.access.endpoints import endpoints, filled
from tests.portal.access.rules import RULES

ENDPOINTS = dict(endpoints())
CHANGES = [
    (name, method)
    for name, rules in sorted(RULES.items())
    for method in rules
    if name.startswith("api:") and method in {"PUT", "PATCH", "DELETE"}
]
# Two people may edit the same text or the same list: a change says what it was made from.
REQUIRED = {
    ("api:assignment-detail", "PATCH"),
    ("api:case-detail", "PATCH"),
    ("api:case-detail", "PUT"),
    ("api:intake-rules", "PUT"),
    ("api:label-detail", "PATCH"),
    ("api:slide-detail", "PATCH"),
    ("api:video-detail", "PATCH"),
    ("api:webhook-detail", "PATCH"),
}
# It is switched, set to one value or deleted: a change may say so.
OPTIONAL = {
    ("api:assignment-detail", "DELETE"),
    ("api:canvas-detail", "PATCH"),
    ("api:case-detail", "DELETE"),
    ("api:label-detail", "DELETE"),
    ("api:label-properties", "PUT"),  # needs it, or the mark in its body
    ("api:member-detail", "DELETE"),
    ("api:member-detail", "PATCH"),
    ("api:quantification-settings", "PUT"),
    ("api:review-rules", "PUT"),
    ("api:slide-detail", "DELETE"),
    ("api:video-detail", "DELETE"),
    ("api:webhook-detail", "DELETE"),
}
# Never edited, only made and removed; or with a version or an offset of its own.
WITHOUT = {
    "api:trash-detail": "an entry of the trash",
    "api:canvas-live": "who has a page open",
    "api:invitation-detail": "renewed or revoked",
    "api:roi-label-confirmation": "said or taken back",
    "api:mosaic-detail": "built once",
    "api:notification-preferences": "one's own",
    "api:service-account-detail": "added and removed",
    "api:service-account-tokens": "made and revoked",
    "api:original-detail": "deleted once",
    "api:quarantine-detail": "decided once",
    "api:redaction-template-detail": "replaced and deleted",
    "api:query-detail": "kept as it was asked",
    "api:report-detail": "kept as it was answered",
    "api:video-event-detail": "its own version (tests/portal/annotations/api/test_video_events.py)",
    "api:roi-detail": "its own version (tests/portal/annotations/api/test_conditions.py)",
    "api:roi-judgement": "one's own",
    "api:token-detail": "one's own",
    "api:upload-detail": "Upload-Offset",
    "api:vocabulary-detail": "imported and deleted",
}


def test_every_change_follows_the_rule(scene: Scene) -> None:
    """Every new URL that changes something must be classified here."""
    names: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    for name, method in CHANGES:
        path = filled(name, ENDPOINTS[name], scene.ids)
        view: type[ApiView] = resolve(path).func.cls  # type: ignore[attr-defined]
        if method in view.if_match:
            names[view.if_match[method]].add((name, method))
        else:
            assert name in WITHOUT, "say in REQUIRED, OPTIONAL or WITHOUT what it is"
    assert (names[True], names[False]) == (REQUIRED, OPTIONAL)


@pytest.mark.parametrize(("name", "method"), sorted(REQUIRED | OPTIONAL))
def test_a_stale_change_is_refused_and_returns_the_current_version(
    scene: Scene, name: str, method: str
) -> None:
    path = filled(name, ENDPOINTS[name], scene.ids)
    body = RULES[name][method].body(scene) if method != "DELETE" else {}
    client = scene.cast.client("manager")

    def send(**headers: str) -> Any:
        call = getattr(client, method.lower())
        return call(path, body, content_type="application/json", headers=headers)

    with transaction.atomic():
        before = client.get(path)
        tag = before["ETag"]
        assert before.status_code == 200 and tag.strip('"')
        assert client.get(path)["ETag"] == client.head(path)["ETag"] == tag
        if (name, method) in REQUIRED:
            missing = send()
            assert (missing.status_code, missing.json()["code"]) == (428, "precondition-required")
        stale = send(**{"If-Match": '"0123456789abcdef"'})
        assert stale.status_code == 412, stale.content
        assert stale["Content-Type"] == "application/problem+json"
        answer = stale.json()
        assert answer["code"] in {"stale-version", "properties-changed"}
        assert answer["current"] == before.json()
        assert _edited(answer["current_version"]) == _edited(tag)
        assert client.get(path).json() == before.json(), "nothing was written"
        done = send(**{"If-Match": f'"another", W/{tag}'})
        assert done.status_code in {200, 204, 409}, done.content  # 409: the state of the object
        if done.status_code == 200:
            assert _edited(done["ETag"]) == _edited(client.get(path)["ETag"])
        transaction.set_rollback(True)


MADE = {  # what is made by itself and may be edited, with a change of it
    "cases": ({"accession": "M-1"}, {"organ": "lung"}),
    "labels": ({"name": "Made"}, {"name": "Made anew"}),
    "webhooks": ({"name": "Made", "url": "https://made.access.example/"}, {"name": "Made anew"}),
}


@pytest.mark.parametrize("name", sorted(MADE))
@pytest.mark.parametrize("key", [None, "made-under-a-key"])
def test_the_etag_of_a_creation_is_accepted_for_a_change(
    scene: Scene, name: str, key: str | None
) -> None:
    place, client = f"/api/v1/{name}/", scene.cast.client("manager")
    new, change = MADE[name]
    headers = {"Idempotency-Key": key} if key else {}

    def send(method: str, path: str, body: Any, **headers: str) -> Any:
        return getattr(client, method)(path, body, "application/json", headers=headers)

    with transaction.atomic():
        made = send("post", place, new | {"lab": scene.ids["labs"]}, **headers)
        assert made.status_code == 201, made.content
        tag = made["ETag"]
        if key:
            again = send("post", place, new | {"lab": scene.ids["labs"]}, **headers)
            assert again["Idempotency-Replayed"] == "true"
            assert (again.content, again["ETag"]) == (made.content, tag)
        url = f"{place}{made.json()['id']}/"
        assert _edited(client.get(url)["ETag"]) == _edited(tag)
        changed = send("patch", url, change, **{"If-Match": tag})
        assert changed.status_code == 200, changed.content
        assert send("patch", url, change, **{"If-Match": tag}).status_code == 412
        transaction.set_rollback(True)


def _edited(tag: str) -> str:
    return tag.strip('"').partition(".")[0]


def test_a_change_by_somebody_else_makes_a_tag_stale_but_not_a_count(scene: Scene) -> None:
    path = filled("api:case-detail", ENDPOINTS["api:case-detail"], scene.ids)
    item, two = scene.cast.client("manager"), scene.cast.client("annotator")

    def change(client: Any, organ: str, tag: str) -> Any:
        body = {"organ": organ}
        return client.patch(path, body, "application/json", headers={"If-Match": tag})

    with transaction.atomic():
        tag = item.get(path)["ETag"]
        sparse = item.get(path, {"fields": "id"})["ETag"]
        assert sparse != tag and _edited(sparse) == _edited(tag), "another answer, the same case"
        first = change(two, "lung", tag)
        assert first.status_code == 200
        late = change(item, "colon", tag)
        assert (late.status_code, late.json()["current"]["organ"]) == (412, "lung")
        again = change(item, "colon", late.json()["current_version"])
        assert (again.status_code, again.json()["organ"]) == (200, "colon")
        assert change(two, "skin", "*").status_code == 200
        assert change(two, "skin", f'"another", {first["ETag"]}').status_code == 412
        transaction.set_rollback(True)
