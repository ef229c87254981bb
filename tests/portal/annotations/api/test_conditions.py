"""Bringing versions back, and who a page acts for, over REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.annotations.models import Roi
from portal.labs.models import User
from tests.clients import client_of

JSON = "application/json"


@pytest.fixture
def client(annotator: User) -> Client:
    return client_of(annotator)


def patch(client: Client, roi: Roi, name: str, **headers: str) -> Any:
    sent = {"If-Match": '"1"', "Idempotency-Key": "a-key-of-mine"} | headers
    return client.patch(f"/api/v1/rois/{roi.pk}/", {"name": name}, JSON, headers=sent)


def test_a_version_is_brought_back_by_its_number(client: Client, roi: Roi) -> None:
    patch(client, roi, "mine")
    url = f"/api/v1/rois/{roi.pk}/restore/"
    assert client.post(url, {"version": 1}, JSON).status_code == 428
    stale = client.post(url, {"version": 1}, JSON, headers={"If-Match": '"1"'})
    assert (stale.status_code, stale.json()["current"]["name"]) == (412, "mine")
    back = client.post(url, {"version": 1}, JSON, headers={"If-Match": '"2"'})
    assert (back.json()["version"], back.json()["name"]) == (3, "")
    unknown = client.post(url, {"version": 9}, JSON, headers={"If-Match": '"3"'})
    assert (unknown.status_code, "no version 9" in unknown.json()["detail"]) == (400, True)


def test_a_deleted_roi_comes_back_changed_as_one_version(client: Client, roi: Roi) -> None:
    url = f"/api/v1/rois/{roi.pk}/"
    client.delete(url, headers={"If-Match": '"1"'})
    answer = client.post(f"{url}restore/", {"name": "b"}, JSON, headers={"If-Match": '"2"'})
    assert (answer.json()["version"], answer.json()["name"]) == (3, "b")
    assert answer.json()["deleted_at"] is None


def test_a_page_rendered_for_one_person_cannot_send_as_another(
    client: Client, roi: Roi, annotator: User, reviewer: User
) -> None:
    refused = patch(client, roi, "mine", **{"X-Acting-User": str(reviewer.pk)})
    assert (refused.status_code, refused.json()["code"]) == (401, "other-user")
    assert roi.revisions.count() == 1
    assert patch(client, roi, "mine", **{"X-Acting-User": str(annotator.pk)}).status_code == 200
