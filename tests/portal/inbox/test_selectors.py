"""Visibility of notifications, and their removal with what they refer to."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_delete
from portal.archive.models import Canvas, Upload
from portal.archive.services.cases import case_delete
from portal.inbox import selectors
from portal.inbox.models import Notification, NotificationKind
from portal.labs.models import Lab, Membership, User
from portal.review.services.comments import comment_add
from tests.portal.annotations.conftest import make_canvas
from tests.portal.inbox.conftest import reject

pytestmark = pytest.mark.django_db


def test_a_person_sees_only_their_notifications(
    roi: Roi, annotator: User, reviewer: User, manager: User, stranger: User
) -> None:
    reject(roi, reviewer, "Too small")
    assert selectors.notification_list(annotator).count() == 1
    assert selectors.unread_count(annotator) == 1
    for other in (reviewer, manager, stranger):
        assert not selectors.notification_list(other).exists()
        assert selectors.unread_count(other) == 0
    assert not Notification.objects.visible_to(AnonymousUser()).exists()


def test_an_entry_names_its_place_its_reason_and_its_page(
    roi: Roi, annotator: User, reviewer: User
) -> None:
    reject(roi, reviewer, "Too small")
    entry = selectors.inbox_entry(selectors.notification_list(annotator).get())
    assert str(reviewer) in entry.title
    assert roi.canvas.case.accession in entry.place and roi.canvas.name in entry.place
    assert entry.text == "Too small"
    assert entry.url == f"/canvases/{roi.canvas_id}/?roi={roi.pk}"


@pytest.mark.parametrize("hidden_by", ["membership", "region", "case", "account"])
def test_a_user_who_cannot_see_an_object_sees_no_notification_of_it(
    roi: Roi, annotator: User, reviewer: User, manager: User, hidden_by: str
) -> None:
    reject(roi, reviewer, "Too small")
    if hidden_by == "membership":
        Membership.objects.filter(user=annotator).delete()
    elif hidden_by == "region":
        roi_delete(roi=roi, user=manager, expected_version=roi.version)
    elif hidden_by == "case":
        case_delete(case=roi.canvas.case, user=manager)
    else:
        User.objects.filter(pk=annotator.pk).update(is_active=False)
    annotator.refresh_from_db()
    assert Notification.objects.filter(recipient=annotator).exists()
    assert not selectors.notification_list(annotator).exists()
    assert selectors.unread_count(annotator) == 0


def test_a_token_of_one_lab_shows_the_notifications_of_that_lab(
    roi: Roi, annotator: User, reviewer: User, other_lab: Lab
) -> None:
    reject(roi, reviewer)
    Membership.objects.create(user=annotator, lab=other_lab, role="viewer")
    annotator.only_lab_id = other_lab.pk
    assert not selectors.notification_list(annotator).exists()
    annotator.only_lab_id = roi.lab_id
    assert selectors.notification_list(annotator).exists()


def test_quarantine_is_shown_to_managers_while_it_lasts(lab: Lab, manager: User) -> None:
    case = make_canvas(lab).case
    upload = Upload.objects.create(
        lab=lab, case=case, filename="cut.png", state="quarantined", error_message="Cut off."
    )
    Notification.objects.create(
        lab=lab, recipient=manager, kind=NotificationKind.QUARANTINED, upload=upload
    )
    entry = selectors.inbox_entry(selectors.notification_list(manager).get())
    assert entry.url == f"/lab/intake/?lab={lab.slug}#file-{upload.pk}"
    assert entry.text == "Cut off." and entry.place == f"{case.accession} · cut.png"
    Membership.objects.filter(user=manager).update(role="reviewer")
    assert not selectors.notification_list(manager).exists()
    Membership.objects.filter(user=manager).update(role="manager")
    Upload.objects.update(state="stored")
    assert not selectors.notification_list(manager).exists()


def test_a_list_of_many_kinds_takes_one_query(
    roi: Roi,
    canvas: Canvas,
    annotator: User,
    reviewer: User,
    django_assert_num_queries: Any,
) -> None:
    reject(roi, reviewer, "Too small")
    comment_add(roi=roi, user=reviewer, text="Look again")
    Notification.objects.create(
        lab=roi.lab, recipient=annotator, kind=NotificationKind.ASSIGNED, params={"count": 3}
    )
    with django_assert_num_queries(1):
        entries = [selectors.inbox_entry(row) for row in selectors.notification_list(annotator)]
    assert len(entries) == 3 and all(entry.title and entry.url for entry in entries)
    assert "3 images" in entries[0].title


def test_the_unread_count_takes_two_queries_at_most_and_stops_at_its_maximum(
    lab: Lab, annotator: User, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(selectors, "MAX_COUNT", 3)
    with django_assert_num_queries(1):
        assert selectors.unread_count(annotator) == 0
    Notification.objects.bulk_create(
        Notification(lab=lab, recipient=annotator, kind=NotificationKind.ASSIGNED) for _ in range(5)
    )
    with django_assert_num_queries(2):
        assert selectors.unread_count(annotator) == 3


def test_every_kind_has_a_title_and_an_area(lab: Lab, annotator: User) -> None:
    for kind in NotificationKind:
        entry = selectors.inbox_entry(Notification(lab=lab, recipient=annotator, kind=kind))
        assert entry.title and kind in selectors.AREAS
