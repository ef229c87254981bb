"""The pages of the inbox and the badge in the header."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from portal.annotations.models import Roi
from portal.inbox.models import Notification, NotificationKind
from portal.inbox.selectors import preferences_of
from portal.labs.models import Lab, User
from portal.review.services.comments import comment_add
from tests.portal.inbox.conftest import reject

pytestmark = pytest.mark.django_db


def badge(client: Client, path: str = "/jobs/") -> str:
    """Text of the unread count in the header; empty while it is hidden."""
    text = client.get(path).content.decode()
    count = text.split("data-inbox-count", 1)[1]
    attributes, _, rest = count.partition(">")
    if "hidden" in attributes:
        return ""
    return rest.split("data-inbox-number>", 1)[1].partition("<")[0]


def test_every_page_shows_the_number_of_unread_notifications(
    page: Client, roi: Roi, reviewer: User
) -> None:
    assert badge(page) == ""
    reject(roi, reviewer, "Too small")
    comment_add(roi=roi, user=reviewer, text="Look again")
    assert badge(page) == "2"
    assert badge(page, "/inbox/") == "2"


def test_the_badge_stops_at_ninety_nine(page: Client, lab: Lab, annotator: User) -> None:
    Notification.objects.bulk_create(
        Notification(lab=lab, recipient=annotator, kind=NotificationKind.ASSIGNED)
        for _ in range(105)
    )
    assert badge(page) == "99+"


def test_the_inbox_links_to_the_very_region_with_the_reason(
    page: Client, roi: Roi, reviewer: User
) -> None:
    reject(roi, reviewer, "Too <small>")
    text = page.get("/inbox/").content.decode()
    assert f'href="/canvases/{roi.canvas_id}/?roi={roi.pk}"' in text
    assert "Too &lt;small&gt;" in text


def test_notifications_are_grouped_by_day(page: Client, roi: Roi, reviewer: User) -> None:
    reject(roi, reviewer)
    comment_add(roi=roi, user=reviewer, text="Look again")
    Notification.objects.filter(kind="region.rejected").update(
        created_at=timezone.now() - timedelta(days=2)
    )
    assert page.get("/inbox/").content.decode().count('class="inbox__day"') == 2


def test_one_notification_or_all_are_marked_as_read(page: Client, roi: Roi, reviewer: User) -> None:
    reject(roi, reviewer)
    comment_add(roi=roi, user=reviewer, text="Look again")
    first = Notification.objects.order_by("created_at")[0]
    answer = page.post("/inbox/read/", {"notification": str(first.pk), "unread": "1"})
    assert answer.headers["Location"] == "/inbox/?unread=1"
    assert badge(page) == "1"
    assert str(first.pk) not in page.get("/inbox/?unread=1").content.decode()
    assert str(first.pk) in page.get("/inbox/").content.decode()
    page.post("/inbox/read/")
    assert badge(page) == ""


def test_a_notification_of_another_person_cannot_be_marked_as_read(
    client: Client, roi: Roi, reviewer: User, manager: User
) -> None:
    reject(roi, reviewer)
    client.force_login(manager)
    client.post("/inbox/read/", {"notification": str(Notification.objects.get().pk)})
    client.post("/inbox/read/")
    assert Notification.objects.get().read_at is None


def test_an_invalid_id_marks_no_notification_as_read(
    page: Client, roi: Roi, reviewer: User
) -> None:
    reject(roi, reviewer)
    page.post("/inbox/read/", {"notification": "1"})
    assert Notification.objects.get().read_at is None


def test_the_inbox_takes_few_queries(
    page: Client, roi: Roi, reviewer: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(6):
        comment_add(roi=roi, user=reviewer, text=f"Comment {number}")
    page.get("/inbox/")
    with django_assert_max_num_queries(10):
        assert page.get("/inbox/").status_code == 200


def test_the_mail_choice_is_saved_and_the_page_shows_whether_mail_is_sent(
    page: Client, annotator: User, settings: Any
) -> None:
    assert page.get("/account/notifications/").context["mail_works"]
    assert page.post("/account/notifications/", {"mail": "never"}).status_code == 302
    assert preferences_of(annotator).mail == "never"
    assert page.post("/account/notifications/", {"mail": "hourly"}).status_code == 400
    assert preferences_of(annotator).mail == "never"
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    answer = page.get("/account/notifications/")
    assert "banner--warn" in answer.content.decode()
