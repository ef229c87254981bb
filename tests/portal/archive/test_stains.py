"""Stain of a slide, from its file or from a person; suggestions stay in the lab."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.archive import inspection
from portal.archive.models import Canvas, Case, IntakeRules, Slide
from portal.archive.selectors.cases import case_facets
from portal.archive.selectors.stains import stains_offered
from portal.archive.services.cases import case_create
from portal.archive.services.stains import slide_stain_set
from portal.audit.models import AuditEntry
from portal.core.models import Event
from portal.jobs.models import JobState
from portal.labs.models import Lab, User
from tests.ml.imaging.staining.test_detection import APERIO, SECRET, write_tiff
from tests.portal.archive.support import picture, run_job, text_of

pytestmark = pytest.mark.django_db
ANY = {"If-Match": "*"}


def stained(slide: Slide, stain: str) -> Slide:
    Slide.objects.filter(pk=slide.pk).update(stain=stain)
    return slide


@pytest.mark.parametrize("takes_names_out", [True, False])
def test_the_stain_of_a_file_is_that_of_its_slide(
    case: Case,
    receive: Any,
    quick: None,
    tmp_path: Path,
    api: APIClient,
    takes_names_out: bool,
) -> None:
    IntakeRules.objects.update_or_create(
        lab=case.lab, defaults={"takes_names_out": takes_names_out, "must_be_clean": False}
    )
    source = write_tiff(tmp_path / "a.svs", f"{APERIO}H&E|User = {SECRET}")
    received = receive(case, source, "a.svs")
    assert run_job(received.job).state == JobState.SUCCEEDED
    slide = Slide.objects.get(pk=received.item.pk)
    assert (slide.stain, slide.is_stain_by_hand) == ("H&E", False)
    shown = api.get(f"/api/v1/slides/{slide.pk}/").json()
    assert (shown["stain"], shown["is_stain_by_hand"]) == ("H&E", False)
    assert ("Stain" in shown["removed"]) == takes_names_out


def test_a_person_sets_the_stain_over_rest(api: APIClient, still: Slide, annotator: User) -> None:
    address = f"/api/v1/slides/{still.pk}/"
    before = api.get(address)
    sent = api.patch(
        address, {"stain": " h&e "}, format="json", headers={"If-Match": before["ETag"]}
    )
    assert (sent.status_code, sent.json()["stain"]) == (200, "H&E")
    assert sent.json()["is_stain_by_hand"] is True
    assert api.get(f"/api/v1/canvases/{still.canvas_id}/").json()["stain"] == "H&E"
    both = api.patch(address, {"stain": "Ki-67", "name": "Section 3"}, headers=ANY).json()
    assert (both["stain"], both["name"]) == ("Ki-67", "Section 3")
    assert api.patch(address, {"stain": ""}, headers=ANY).json()["stain"] == ""
    noted = AuditEntry.objects.filter(action="slide.stained")
    assert {(entry.actor_id, entry.object_id) for entry in noted} == {(annotator.pk, still.pk)}
    assert "Ki-67" not in str(list(Event.objects.values_list("payload", flat=True)))


def test_a_concurrently_set_stain_is_not_overwritten(api: APIClient, still: Slide) -> None:
    address = f"/api/v1/slides/{still.pk}/"
    tag = api.get(address)["ETag"]
    assert api.patch(address, {"stain": "PAS"}, format="json").status_code == 428
    assert api.patch(address, {"stain": "PAS"}, headers={"If-Match": tag}).status_code == 200
    late = api.patch(address, {"stain": "Giemsa"}, headers={"If-Match": tag})
    assert (late.status_code, late.json()["current"]["stain"]) == (412, "PAS")


@pytest.mark.parametrize("sent", [{}, {"stain": "x" * 81}, {"stain": None}, {"stain": ["PAS"]}])
def test_an_unknown_stain_is_refused(api: APIClient, still: Slide, sent: Any) -> None:
    stained(still, "PAS")
    answer = api.patch(f"/api/v1/slides/{still.pk}/", sent, format="json", headers=ANY)
    assert answer.status_code == 400
    still.refresh_from_db()
    assert still.stain == "PAS"


def test_a_word_is_written_as_the_lab_writes_it(
    still: Slide, slide: Slide, foreign_slide: Slide, annotator: User
) -> None:
    stained(foreign_slide, "KI-67")
    assert slide_stain_set(slide=still, user=annotator, stain="Ki-67").stain == "Ki-67"
    assert slide_stain_set(slide=slide, user=annotator, stain="ki-67").stain == "Ki-67"
    assert slide_stain_set(slide=slide, user=annotator, stain="haematoxylin & eosin").stain == "H&E"


def test_a_stain_set_during_preparation_remains(
    case: Case, receive: Any, quick: None, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = receive(case, picture(), "a.png")
    look = inspection.slide_inspect

    def set_first(*arguments: Any, **options: Any) -> Any:
        slide = Slide.objects.get(pk=received.item.pk)
        slide_stain_set(slide=slide, user=annotator, stain="PAS")
        return replace(look(*arguments, **options), stain="H&E")

    monkeypatch.setattr(inspection, "slide_inspect", set_first)
    assert run_job(received.job).state == JobState.SUCCEEDED
    slide = Slide.objects.get(pk=received.item.pk)
    assert (slide.stain, slide.is_stain_by_hand) == ("PAS", True)


def test_words_of_another_lab_are_not_offered(
    still: Slide, slide: Slide, foreign_slide: Slide, annotator: User, other_lab: Lab
) -> None:
    stained(still, "pas")
    stained(slide, "Ki-67")
    stained(foreign_slide, "Grocott silver")
    offered = stains_offered(user=annotator, lab_id=still.lab_id)
    assert offered[:3] == ["Ki-67", "pas", "H&E"]
    assert "PAS" not in offered and "Grocott silver" not in offered
    assert "Grocott silver" not in stains_offered(user=annotator, lab_id=other_lab.pk)
    assert case_facets(user=annotator).stains == ["Ki-67", "pas"]


def test_pages_show_it_and_offer_words(
    page: Client, still: Slide, slide: Slide, foreign_slide: Slide
) -> None:
    stained(still, "Ki-67")
    stained(foreign_slide, "Grocott silver")
    for path in (f"/cases/{still.case_id}/", f"/canvases/{still.canvas_id}/", "/cases/"):
        body = text_of(page.get(path))
        assert "Ki-67" in body and "Grocott silver" not in body, path
    case = text_of(page.get(f"/cases/{still.case_id}/"))
    assert '<option value="Ki-67"></option>' in case and "H&amp;E" in case
    sent = page.post(f"/slides/{slide.pk}/stain/", {"stain": "PAS"}, follow=True)
    assert "Stain: PAS." in text_of(sent)
    assert page.post(f"/slides/{foreign_slide.pk}/stain/", {"stain": "PAS"}).status_code == 404
    assert "at most 80" in text_of(
        page.post(f"/slides/{slide.pk}/stain/", {"stain": "x" * 81}, follow=True)
    )


def test_a_page_does_not_overwrite_fields_it_did_not_show(page: Client, still: Slide) -> None:
    body = text_of(page.get(f"/cases/{still.case_id}/"))
    form = body.partition(f"/slides/{still.pk}/stain/")[2]
    seen = form.partition('name="edit_tag" value="')[2].partition('"')[0]
    page.post(f"/slides/{still.pk}/stain/", {"stain": "PAS", "edit_tag": seen})
    late = page.post(f"/slides/{still.pk}/stain/", {"stain": "Gram", "edit_tag": seen}, follow=True)
    assert "its stain “PAS”. Yours was not saved: “Gram”" in text_of(late)
    still.refresh_from_db()
    assert still.stain == "PAS"


def test_a_viewer_reads_it_and_gets_no_form(client: Client, viewer: User, still: Slide) -> None:
    stained(still, "Ki-67")
    client.force_login(viewer)
    for path in (f"/cases/{still.case_id}/", f"/canvases/{still.canvas_id}/"):
        body = text_of(client.get(path))
        assert "Ki-67" in body and 'id="stains"' not in body


def test_lists_are_filtered_by_stain(
    api: APIClient, page: Client, lab: Lab, annotator: User, still: Slide, slide: Slide
) -> None:
    case_create(lab=lab, user=annotator, accession="EMPTY-1")
    stained(still, "PAS")
    listed = api.get("/api/v1/slides/", {"stain": "pas"}).json()["results"]
    assert [row["id"] for row in listed] == [str(still.pk)]
    assert api.get("/api/v1/slides/", {"stain": "PA"}).json()["results"] == []
    result = api.get("/api/v1/cases/", {"stain": "pas"}).json()["results"]
    assert [item["id"] for item in result] == [str(still.case_id)]
    body = text_of(page.get("/cases/", {"stain": "PAS"}))
    assert "S-1" in body and "EMPTY-1" not in body
    choices = text_of(page.get(f"/canvases/{slide.canvas_id}/compare/choices/?q=PAS"))
    assert str(still.canvas_id) in choices


def test_a_canvas_that_is_no_slide_has_no_stain(api: APIClient, video: Any) -> None:
    assert api.get(f"/api/v1/canvases/{video.canvas_id}/").json()["stain"] == ""
    sent = api.patch(f"/api/v1/videos/{video.pk}/", {"stain": "PAS"}, headers=ANY)
    assert sent.status_code == 400


def test_a_shared_case_shows_it_and_no_word_of_the_lab(still: Slide, stranger: User) -> None:
    stained(still, "Ki-67")
    canvas = Canvas.objects.get(pk=still.canvas_id)
    assert "Ki-67" not in stains_offered(user=stranger, lab_id=canvas.lab_id)
