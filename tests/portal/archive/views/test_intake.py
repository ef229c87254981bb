"""The page of intake: rules, quarantine, and the card of what did not pass."""

from __future__ import annotations

import json
from typing import Any

import cv2
import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from portal.archive.models import Case, IntakeRules, RedactionTemplate, Slide, Upload
from portal.jobs.models import Job
from portal.labs.models import User
from tests.ml.imaging.phi_detection.support import named, tissue
from tests.portal.archive.support import picture, run_job, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client: Client, manager: User) -> Client:
    client.force_login(manager)
    return client


def test_an_empty_quarantine_has_a_message(page: Client, case: Case) -> None:
    shown = text_of(page.get(reverse("archive:intake")))
    assert "Nothing in quarantine" in shown
    assert "Save rules" in shown


def test_rules_are_saved(page: Client, case: Case) -> None:
    page.post(reverse("archive:intake_rules"), {"must_be_clean": "on"})
    rules = IntakeRules.objects.get()
    assert (rules.takes_names_out, rules.must_be_clean) == (False, True)


def test_quarantined_files_are_listed_with_a_fixed_number_of_queries(
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


def test_files_refused_on_arrival_are_shown_only_to_managers_of_the_lab(
    page: Client, case: Case, manager: User, stranger: User, django_assert_max_num_queries: Any
) -> None:
    assert "Refused on arrival" not in text_of(page.get(reverse("archive:intake")))
    data: dict[str, Any] = {
        "case": case,
        "lab": case.lab,
        "created_by": manager,
        "size_bytes": 800,
        "state": "refused",
        "error_message": "report.docx was not stored: the file is unknown.",
    }
    Upload.objects.create(filename="report.docx", **data)
    Upload.objects.create(filename="a part of it", is_part=True, **data)
    with django_assert_max_num_queries(20) as few:
        shown = text_of(page.get(reverse("archive:intake")))
        count = len(few)
    assert "Refused on arrival" in shown and "the file is unknown" in shown
    assert "a part of it" not in shown
    Upload.objects.bulk_create(Upload(filename=f"{n}.docx", **data) for n in range(5))
    with django_assert_max_num_queries(count):
        page.get(reverse("archive:intake"))
    page.force_login(stranger)
    assert "report.docx" not in text_of(page.get(reverse("archive:intake")))


def test_a_manager_sees_the_evidence_and_decides(
    page: Client,
    case: Case,
    receive: Any,
    quick: None,
    annotator: User,
    stranger: User,
    settings: Any,
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    still = bytes(cv2.imencode(".png", named(tissue())[..., ::-1])[1])
    run_job(receive(case, still, "named.png").job)
    held = Upload.objects.get(state="quarantined")
    address = reverse("api:quarantine-picture", args=[held.pk])
    shown = text_of(page.get(reverse("archive:intake")))
    assert "A date in the picture at the upper left" in shown
    assert "12/03/1961" in shown, "the words, for who decides"
    assert address in shown
    assert "Release" in shown
    answer = page.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/jpeg")
    body = page.get(reverse("api:quarantine-detail", args=[held.pk])).json()["findings"]
    assert body[0]["kind"] == "date"
    assert "12/03/1961" in body[0]["text"]
    for user, status in ((annotator, 403), (stranger, 404)):
        page.force_login(user)
        assert page.get(address).status_code == status


def test_the_handling_of_text_and_faces_is_configurable(
    page: Client, case: Case, settings: Any
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    sent = {
        "takes_names_out": "on",
        "identifying_text": "warn",
        "faces": "burn",
        "ignored_words": "CHROMA\r\n\r\nKarl Storz \r\nCHROMA",
    }
    page.post(reverse("archive:intake_rules"), sent)
    rules = IntakeRules.objects.get()
    assert (rules.identifying_text, rules.other_text, rules.faces) == ("warn", "warn", "hold")
    assert rules.ignored_words == ["CHROMA", "Karl Storz"]
    address = reverse("api:intake-rules", args=[case.lab_id])
    body = {"takes_names_out": True, "must_be_clean": False, "titles_from_files": True}
    read = {"If-Match": page.get(address)["ETag"]}
    answer = page.put(address, body, content_type="application/json", headers=read)
    assert answer.json()["identifying_text"] == "warn", "what is left out stays"
    assert answer.json()["ignored_words"] == ["CHROMA", "Karl Storz"]
    wrong = body | {"identifying_text": "x"}
    refused = page.put(address, wrong, content_type="application/json", headers=read)
    assert refused.status_code == 400


@pytest.mark.slow
def test_a_manager_draws_boxes_on_a_page_and_over_rest(
    page: Client,
    case: Case,
    receive: Any,
    annotator: User,
    settings: Any,
    django_assert_max_num_queries: Any,
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    still = bytes(cv2.imencode(".png", named(tissue())[..., ::-1])[1])
    run_job(receive(case, still, "named.png").job)
    held = Upload.objects.get(state="quarantined")
    address = reverse("archive:quarantine_redact", args=[held.pk])
    assert address in text_of(page.get(reverse("archive:intake")))
    with django_assert_max_num_queries(20):
        shown = text_of(page.get(address))
    assert 'aria-current="true">Lab' in shown
    assert "The original is deleted for good" in shown
    assert "12/03/1961" in shown
    frame = page.get(reverse("api:quarantine-frame", args=[held.pk]))
    assert (frame.status_code, frame["Content-Type"]) == (200, "image/jpeg")
    assert "no-store" in frame["Cache-Control"]
    decoded = cv2.imdecode(np.frombuffer(frame.content, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None and decoded.shape == (400, 640, 3)
    label = page.get(reverse("api:quarantine-frame", args=[held.pk]), {"image": "label"})
    assert label.status_code == 404
    refused = page.post(address, {"boxes": "nonsense"}, follow=True)
    assert "draw a box" in text_of(refused)
    rest = reverse("api:quarantine-redact", args=[held.pk])
    box = {"x": 0.03, "y": 0.03, "width": 0.6, "height": 0.12}
    for wrong in ({}, {"boxes": [{"x": 2}]}, {"boxes": [box | {"width": 0}]}):
        answer = page.post(rest, wrong, content_type="application/json")
        assert answer.status_code == 400, wrong
    page.force_login(annotator)
    assert page.get(address).status_code == 403
    page.force_login(case.lab.memberships.get(role="manager").user)
    answer = page.post(rest, {"boxes": [box]}, content_type="application/json")
    assert answer.status_code == 202
    assert answer.json()["job"]["kind"] == "slide_ingest"
    run_job(Job.objects.get(pk=answer.json()["job"]["id"]))
    assert Slide.objects.get().state == "ready"


@pytest.mark.slow
def test_the_original_of_a_redacted_file_is_downloaded_and_deleted_by_managers(
    page: Client, case: Case, receive: Any, quick: None, annotator: User, settings: Any
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    page.post(reverse("archive:intake_rules"), {"keeps_originals": "on", "takes_names_out": "on"})
    still = bytes(cv2.imencode(".png", named(tissue())[..., ::-1])[1])
    run_job(receive(case, still, "named.png").job)
    held = Upload.objects.get(state="quarantined")
    address = reverse("archive:quarantine_redact", args=[held.pk])
    box = {"x": 0.03, "y": 0.03, "width": 0.6, "height": 0.12}
    done = page.post(address, {"boxes": json.dumps([box])}, follow=True)
    assert "is being redacted" in text_of(done)
    run_job(Job.objects.get(target_id=Slide.objects.get().pk, state="queued"))
    original = Upload.objects.get(state="withheld")
    download = reverse("api:original-file", args=[original.pk])
    assert download in text_of(page.get(reverse("archive:intake")))
    answer = page.get(download)
    assert b"".join(answer.streaming_content) == still  # type: ignore[attr-defined]
    assert "attachment" in answer["Content-Disposition"]
    listed = page.get(reverse("api:original-list")).json()["results"]
    assert [row["filename"] for row in listed] == ["named.png"]
    page.force_login(annotator)
    assert page.get(download).status_code == 403
    assert page.get(reverse("api:original-list")).json()["results"] == []
    page.force_login(case.lab.memberships.get(role="manager").user)
    page.post(reverse("archive:original_delete", args=[original.pk]))
    assert not Upload.objects.filter(state="withheld").exists()


@pytest.mark.slow
def test_boxes_are_kept_as_a_template_and_redact_another_file(
    page: Client, case: Case, receive: Any, quick: None, annotator: User, settings: Any
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    for number in (0, 1):
        pixels = named(tissue())[..., ::-1].copy()
        pixels[-1, :8] = number
        still = bytes(cv2.imencode(".png", pixels)[1])
        run_job(receive(case, still, f"{number}.png").job)
    first, second = Upload.objects.filter(state="quarantined").order_by("name")
    intake = text_of(page.get(reverse("archive:intake")))
    assert "Redaction templates" not in intake
    address = reverse("archive:quarantine_redact", args=[first.pk])
    assert (
        "Keep these boxes as a template for stills of 640 × 400 px of an unknown device"
        in text_of(page.get(address))
    )
    box = {"x": 0.03, "y": 0.03, "width": 0.6, "height": 0.12}
    done = page.post(address, {"boxes": json.dumps([box]), "template": "1"}, follow=True)
    assert "Redact 1 held file" in text_of(done)
    template = RedactionTemplate.objects.get()
    proposed = text_of(page.get(reverse("archive:quarantine_redact", args=[second.pk])))
    assert (
        "The boxes of the template for stills of 640 × 400 px of an unknown device are proposed"
        in proposed
    )
    apply = reverse("archive:template_apply", args=[template.pk])
    page.force_login(annotator)
    assert page.post(apply).status_code == 403
    page.force_login(case.lab.memberships.get(role="manager").user)
    assert "1 file is being redacted" in text_of(page.post(apply, follow=True))
    assert "No held file of this scope" in text_of(page.post(apply, follow=True))
    for job in Job.objects.filter(kind="slide_ingest", state="queued"):
        run_job(job)
    assert set(Slide.objects.values_list("state", flat=True)) == {"ready"}
    deleted = page.post(reverse("archive:template_delete", args=[template.pk]), follow=True)
    assert "The template was deleted" in text_of(deleted)


def test_templates_are_saved_listed_applied_and_deleted_over_rest(
    page: Client, case: Case, receive: Any, quick: None, annotator: User, settings: Any
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    still = bytes(cv2.imencode(".png", named(tissue())[..., ::-1])[1])
    run_job(receive(case, still, "named.png").job)
    held = Upload.objects.get(state="quarantined")
    scope = page.get(reverse("api:quarantine-detail", args=[held.pk])).json()["scope"]
    assert scope == {"kind": "still", "device": "", "width_px": 640, "height_px": 400}
    url = reverse("api:redaction-template-list")
    box = {"x": 0.03, "y": 0.03, "width": 0.6, "height": 0.12}
    body = {"upload": str(held.pk), "boxes": [box]}
    empty = page.post(url, body | {"boxes": []}, content_type="application/json")
    assert empty.status_code == 400
    saved = page.post(url, body, content_type="application/json")
    assert saved.status_code == 201
    (listed,) = page.get(url).json()["results"]
    assert listed == saved.json()
    assert (listed["held_count"], listed["boxes"]) == (1, [box])
    apply = reverse("api:redaction-template-apply", args=[listed["id"]])
    page.force_login(annotator)
    assert page.get(url).json()["results"] == []
    assert page.post(apply).status_code == 403
    page.force_login(case.lab.memberships.get(role="manager").user)
    applied = page.post(apply)
    assert (applied.status_code, applied.json()["count"]) == (202, 1)
    run_job(Job.objects.get(pk=applied.json()["jobs"][0]))
    assert Slide.objects.get().state == "ready"
    assert page.post(apply).status_code == 409
    item = reverse("api:redaction-template-detail", args=[listed["id"]])
    assert page.delete(item).status_code == 204
