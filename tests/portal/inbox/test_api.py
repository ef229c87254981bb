"""The inbox over REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.annotations.models import Roi
from portal.inbox.models import Notification, NotificationKind
from portal.labs.models import TokenArea, TokenScope, User
from portal.labs.services.tokens import token_create
from portal.review.services.comments import comment_add
from tests.portal.inbox.conftest import reject

pytestmark = pytest.mark.django_db
PATH = "/api/v1/notifications/"


@pytest.fixture
def rejected(roi: Roi, reviewer: User) -> Notification:
    """The annotator's notification of a rejection."""
    reject(roi, reviewer, "Too small")
    return Notification.objects.get()


def test_a_notification_names_its_subject(
    api: Any, rejected: Notification, reviewer: User, roi: Roi
) -> None:
    (row,) = api.get(PATH).json()["results"]
    assert row == api.get(f"{PATH}{rejected.pk}/").json()
    assert (row["id"], row["kind"]) == (str(rejected.pk), "region.rejected")
    assert (row["roi"], row["lab"]) == (str(roi.pk), str(roi.lab_id))
    assert (row["text"], row["actor"]) == ("Too small", str(reviewer))
    assert row["mosaic"] is None and row["read_at"] is None
    assert row["url"].endswith(f"?roi={roi.pk}")


def test_the_list_is_filtered_and_comes_in_pages(
    api: Any, rejected: Notification, roi: Roi, reviewer: User
) -> None:
    for text in ("Look again", "And again"):
        comment_add(roi=roi, user=reviewer, text=text)
    first = api.get(PATH, {"page_size": 2}).json()
    second = api.get(first["next"]).json()
    kinds = [row["kind"] for row in first["results"] + second["results"]]
    assert kinds == ["region.commented", "region.commented", "region.rejected"]
    assert second["next"] is None
    body = api.get(PATH, {"kind": "region.rejected"}).json()["results"]
    assert [row["id"] for row in body] == [str(rejected.pk)]
    api.post(f"{PATH}{rejected.pk}/read/")
    assert len(api.get(PATH, {"is_unread": "true"}).json()["results"]) == 2
    assert len(api.get(PATH, {"is_unread": "false"}).json()["results"]) == 1
    assert api.get(PATH, {"kind": "nothing"}).status_code == 400


def test_reading_twice_preserves_the_first_time(api: Any, rejected: Notification) -> None:
    at = api.post(f"{PATH}{rejected.pk}/read/").json()["read_at"]
    assert at is not None
    assert api.post(f"{PATH}{rejected.pk}/read/").json()["read_at"] == at


def test_several_or_all_are_marked_as_read(
    api: Any, rejected: Notification, roi: Roi, reviewer: User
) -> None:
    comment_add(roi=roi, user=reviewer, text="Look again")
    assert api.get(f"{PATH}unread/").json() == {"count": 2}
    path = f"{PATH}read/"
    assert api.post(path, {"ids": []}, format="json").json() == {"count": 0}
    assert api.post(path, {"ids": [str(rejected.pk)]}, format="json").json() == {"count": 1}
    assert api.post(path, {}, format="json").json() == {"count": 1}
    assert api.get(f"{PATH}unread/").json() == {"count": 0}


def test_a_token_reads_the_kinds_of_its_areas(rejected: Notification, annotator: User) -> None:
    Notification.objects.create(
        lab=rejected.lab, recipient=annotator, kind=NotificationKind.IMPORT_FINISHED
    )
    _, secret = token_create(
        annotator,
        name="files",
        scope=TokenScope.WRITE,
        expires_in=timedelta(days=1),
        areas={TokenArea.CASES: TokenScope.WRITE},
    )
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    body = client.get(PATH).json()["results"]
    assert [row["kind"] for row in body] == ["import.finished"]
    assert client.get(f"{PATH}unread/").json() == {"count": 1}
    assert client.post(f"{PATH}read/", {}, content_type="application/json").json() == {"count": 1}
    rejected.refresh_from_db()
    assert rejected.read_at is None


def test_the_mail_choice_is_read_and_set(api: Any, annotator: User) -> None:
    path = "/api/v1/notification-preferences/"
    assert api.get(path).json() == {"mail": "daily", "mail_works": True}
    assert api.put(path, {"mail": "at-once"}, format="json").json()["mail"] == "at-once"
    assert api.get(path).json()["mail"] == "at-once"
    assert api.put(path, {"mail": "hourly"}, format="json").status_code == 400
