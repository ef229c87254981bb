"""The page of intake: rules, quarantine, and the card of what did not pass."""

from __future__ import annotations

from typing import Any

import cv2
import pytest
from django.test import Client
from django.urls import reverse

from portal.archive.models import Case, IntakeRules, Upload
from portal.labs.models import User
from tests.ml.imaging.revealing.support import named, tissue
from tests.portal.archive.support import picture, run_job, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client: Client, manager: User) -> Client:
    client.force_login(manager)
    return client


def test_an_empty_quarantine_says_so(page: Client, case: Case) -> None:
    shown = text_of(page.get(reverse("archive:intake")))
    assert "Nothing in quarantine" in shown
    assert "Save rules" in shown


def test_rules_are_saved(page: Client, case: Case) -> None:
    page.post(reverse("archive:intake_rules"), {"must_be_clean": "on"})
    rules = IntakeRules.objects.get()
    assert (rules.takes_names_out, rules.must_be_clean) == (False, True)


def test_what_did_not_pass_stands_there_and_asks_as_often_for_many(
    page: Client, case: Case, receive: Any, quick: None, django_assert_max_num_queries: Any
) -> None:
    received = receive(case, picture()[:5000], "cut.png")
    run_job(received.job)
    with django_assert_max_num_queries(20) as few:
        shown = text_of(page.get(reverse("archive:intake")))
        count = len(few)
    assert "cut.png" in shown
    assert "Release" not in shown, "it cannot be opened"
    card = page.get(reverse("archive:item_card", args=["slide", received.item.pk]))
    assert "In quarantine" in text_of(card)
    body = text_of(page.get(reverse("archive:case_detail", args=[case.pk])))
    assert "data-item-state" not in body, "no slide, and told all the same"
    assert "cut.png" in body
    for number in range(3):
        run_job(receive(case, picture(seed=number + 5)[:5000], f"{number}.png").job)
    with django_assert_max_num_queries(count):
        page.get(reverse("archive:intake"))
    held = Upload.objects.filter(filename="cut.png").get()
    page.post(reverse("archive:quarantine_release", args=[held.pk]), {"reason": "x"})
    held.refresh_from_db()
    assert held.state == "quarantined"
    page.post(reverse("archive:quarantine_delete", args=[held.pk]))
    assert not Upload.objects.filter(pk=held.pk).exists()


def test_what_was_refused_on_arrival_is_told_to_managers_of_its_lab_alone(
    page: Client, case: Case, manager: User, stranger: User, django_assert_max_num_queries: Any
) -> None:
    assert "Refused on arrival" not in text_of(page.get(reverse("archive:intake")))
    told: dict[str, Any] = {
        "case": case,
        "lab": case.lab,
        "created_by": manager,
        "size_bytes": 800,
        "state": "refused",
        "error_message": "report.docx was not stored: the file is unknown.",
    }
    Upload.objects.create(filename="report.docx", **told)
    Upload.objects.create(filename="a part of it", is_part=True, **told)
    with django_assert_max_num_queries(20) as few:
        shown = text_of(page.get(reverse("archive:intake")))
        count = len(few)
    assert "Refused on arrival" in shown and "the file is unknown" in shown
    assert "a part of it" not in shown
    Upload.objects.bulk_create(Upload(filename=f"{n}.docx", **told) for n in range(5))
    with django_assert_max_num_queries(count):
        page.get(reverse("archive:intake"))
    page.force_login(stranger)
    assert "report.docx" not in text_of(page.get(reverse("archive:intake")))


def test_a_manager_sees_what_was_seen_and_chooses_what_becomes_of_it(
    page: Client, case: Case, receive: Any, quick: None, annotator: User, stranger: User
) -> None:
    still = bytes(cv2.imencode(".png", named(tissue())[..., ::-1])[1])
    run_job(receive(case, still, "named.png").job)
    held = Upload.objects.get(state="quarantined")
    address = reverse("api:quarantine-picture", args=[held.pk])
    shown = text_of(page.get(reverse("archive:intake")))
    assert "Text in the picture at the upper left" in shown
    assert address in shown
    assert "Release" in shown
    answer = page.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/jpeg")
    found = page.get(reverse("api:quarantine-detail", args=[held.pk])).json()["found"]
    assert found[0]["kind"] == "text"
    for user, status in ((annotator, 403), (stranger, 404)):
        page.force_login(user)
        assert page.get(address).status_code == status


def test_what_becomes_of_text_and_faces_is_chosen(page: Client, case: Case) -> None:
    sent = {"takes_names_out": "on", "text_in_pixels": "tell", "faces_in_pixels": "burn"}
    page.post(reverse("archive:intake_rules"), sent)
    rules = IntakeRules.objects.get()
    assert (rules.text_in_pixels, rules.faces_in_pixels) == ("tell", "hold")
    address = reverse("api:intake-rules", args=[case.lab_id])
    body = {"takes_names_out": True, "must_be_clean": False, "titles_from_files": True}
    read = {"If-Match": page.get(address)["ETag"]}
    answer = page.put(address, body, content_type="application/json", headers=read)
    assert answer.json()["text_in_pixels"] == "tell", "what is left out stays"
    wrong = body | {"text_in_pixels": "x"}
    refused = page.put(address, wrong, content_type="application/json", headers=read)
    assert refused.status_code == 400
