"""A write of ROIs that breaks off anywhere and is sent again under its key is carried out once."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from portal.annotations.models import RoiRevision
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.core.models import Event
from portal.labs.models import User
from tests.portal.annotations.support import box

ROIS = "/api/v1/rois/"


class CrashError(Exception):
    """The process is gone."""


def crashing(at: int) -> Callable[..., Any]:
    """A wrapper of statements of which the ``at``-th fails, an even one after it was executed."""
    count = 0

    def run(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal count
        if "SAVEPOINT" in sql:
            return execute(sql, params, many, context)
        count += 1
        if count == at and at % 2:
            raise CrashError
        executed = execute(sql, params, many, context)
        if count == at:
            raise CrashError
        return executed

    return run


@pytest.fixture
def send(api: APIClient, canvas: Canvas, annotator: User) -> Callable[[str, str], Any]:
    roi = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9)).roi
    deleted = roi_create(canvas=canvas, user=annotator, geometry=box(20, 20, 29, 29)).roi
    deleted.deleted_at = deleted.created_at
    deleted.save()
    new = str(uuid.uuid4())
    item, tag = f"{ROIS}{roi.pk}/", {"If-Match": '"1"'}

    def sent(kind: str, key: str) -> Any:
        headers = {"Idempotency-Key": key}
        if kind == "draw":
            body = {"canvas": str(canvas.pk), "geometry": box(1, 1, 50, 50)}
            return api.post(ROIS, body, format="json", headers=headers)
        if kind == "rename":
            return api.patch(item, {"name": "mine"}, format="json", headers=headers | tag)
        if kind == "delete":
            return api.delete(item, headers=headers | tag)
        if kind == "restore":
            url = f"{ROIS}{deleted.pk}/restore/"
            return api.post(url, {"name": "b"}, format="json", headers=headers | tag)
        changes = [
            {"do": "update", "id": str(roi.pk), "version": 1, "name": "many"},
            {"do": "create", "id": new, "geometry": box(1, 1, 50, 50)},
        ]
        body = {"canvas": str(canvas.pk), "changes": changes}
        return api.post(f"{ROIS}bulk/", body, format="json", headers=headers)

    return sent


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["draw", "rename", "delete", "restore", "bulk"])
def test_whatever_statement_was_the_last_one_it_is_written_once(
    send: Callable[[str, str], Any], kind: str
) -> None:
    before = RoiRevision.objects.count(), Event.objects.count()
    is_broken, at = True, 0
    while is_broken:
        at += 1
        try:
            with connection.execute_wrapper(crashing(at)):
                first = send(kind, "one-key-for-all")
            is_broken = False
        except CrashError:
            assert (RoiRevision.objects.count(), Event.objects.count()) == before
    assert at > 5
    written = RoiRevision.objects.count(), Event.objects.count()
    count = 2 if kind == "bulk" else 1
    assert written == (before[0] + count, before[1] + count)
    again = send(kind, "one-key-for-all")
    assert first.status_code in (200, 201, 204)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again["Idempotency-Replayed"] == "true"
    assert (RoiRevision.objects.count(), Event.objects.count()) == written
