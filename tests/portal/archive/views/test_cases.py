"""Pages: what they show, who may, how many queries they cost."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.archive.models import Case, Slide, TrashEntry, Upload
from portal.archive.services.cases import case_create
from portal.labs.models import Lab, Membership, Role, User
from portal.labs.requests import CURRENT_LAB
from tests.portal.archive.support import picture, run_job, text_of

pytestmark = pytest.mark.django_db


def test_the_empty_list_has_a_message(page: Client) -> None:
    assert "No cases yet" in text_of(page.get("/cases/"))


def test_the_list_shows_cases_with_thumbnails(page: Client, slide: Slide) -> None:
    body = text_of(page.get("/cases/"))
    assert "S-1" in body
    assert f"/api/v1/canvases/{slide.canvas_id}/thumbnail.jpg" in body


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=s-1", True),
        ("q=COLON+urgent", True),
        ("q=colon+lung", False),
        ("organ=Colon", True),
        ("tag=URGENT", True),
        ("tag=urg", False),
        ("kind=slide", False),
        ("kind=empty", True),
        ("sex=female", False),
        ("age_band=nonsense", True),
    ],
)
def test_search_and_filters(page: Client, case: Case, query: str, found: bool) -> None:
    assert ("S-1" in text_of(page.get(f"/cases/?{query}"))) is found


def test_htmx_gets_only_the_table(page: Client, case: Case) -> None:
    response = page.get("/cases/?q=S-1&organ=", headers={"HX-Request": "true"})
    body = text_of(response)
    assert response.headers["HX-Push-Url"] == "/cases/?q=S-1"
    assert body.strip().startswith('<div id="cases"')
    assert "S-1" in body


def test_columns_sort_both_ways(page: Client, lab: Lab, annotator: User) -> None:
    for accession in ("B-2", "A-1", "C-3"):
        case_create(lab=lab, user=annotator, accession=accession)
    up = text_of(page.get("/cases/?ordering=accession"))
    down = text_of(page.get("/cases/?ordering=-accession"))
    assert up.index("A-1") < up.index("B-2") < up.index("C-3")
    assert down.index("C-3") < down.index("A-1")
    assert 'aria-sort="descending"' in down


@pytest.mark.parametrize("count", [1, 30])
def test_the_list_costs_the_same_for_one_row_and_thirty(
    page: Client,
    lab: Lab,
    annotator: User,
    slide: Slide,
    count: int,
    django_assert_max_num_queries: Any,
) -> None:
    for number in range(count):
        case_create(lab=lab, user=annotator, accession=f"N-{number}", tags=["x"])
    with django_assert_max_num_queries(16):
        page.get("/cases/")


def test_buttons_for_managers_follow_the_labs_that_are_shown(
    page: Client, case: Case, lab: Lab, other_lab: Lab, annotator: User, manager: User
) -> None:
    buttons = ("share-cases", "data-selection-go", "data-selection-export")

    def shown(user: User, chosen: str = "") -> tuple[bool, ...]:
        page.force_login(user)
        session = page.session
        session[CURRENT_LAB] = chosen
        session.save()
        body = text_of(page.get("/cases/"))
        return tuple(button in body for button in (*buttons, "/import"))

    assert shown(manager) == (True, True, True, True)
    assert shown(annotator) == (False, False, False, False)
    Membership.objects.create(lab=other_lab, user=annotator, role=Role.MANAGER)
    assert shown(annotator) == (True, True, True, True)
    assert shown(annotator, lab.slug) == (False, False, False, True)


@pytest.mark.parametrize("count", [1, 30])
def test_a_case_costs_the_same_for_one_item_and_thirty(
    page: Client, case: Case, receive: Any, count: int, django_assert_max_num_queries: Any
) -> None:
    for number in range(count):
        receive(case, picture(16, 16, seed=number), f"{number}.png")
    with django_assert_max_num_queries(22):
        body = text_of(page.get(f"/cases/{case.pk}/"))
    assert body.count('data-item-state="preparing"') == count


def test_the_sender_reads_on_the_case_why_a_file_was_refused(
    page: Client, case: Case, receive: Any, quick: None, manager: User
) -> None:
    run_job(receive(case, picture()[:5000], "cut.png").job)
    body = text_of(page.get(f"/cases/{case.pk}/"))
    assert "In quarantine or refused" in body
    assert "The PNG file is truncated." in body
    assert "This case is empty" not in body
    assert "/lab/intake/" not in body
    Upload.objects.update(created_by=manager)
    assert "cut.png" not in text_of(page.get(f"/cases/{case.pk}/")), "of others managers alone know"
    page.force_login(manager)
    body = text_of(page.get(f"/cases/{case.pk}/"))
    assert "The PNG file is truncated." in body
    assert "/lab/intake/" in body


def test_a_card_lists_fields_and_places_that_were_removed(page: Client, slide: Slide) -> None:
    slide.asset.removed = ["label", "2 places in the picture"]
    slide.asset.save(update_fields=["removed"])
    text = text_of(page.get(f"/cases/{slide.case_id}/"))
    assert "Removed from the file" in text and "label, 2 places in the picture" in text
    assert "2 fields" not in text


def test_a_case_is_created_and_edited(page: Client, lab: Lab) -> None:
    sent = {
        "lab": str(lab.pk),
        "accession": "  S  77 ",
        "sex": "female",
        "age_band": "50-59",
        "tags": "Teaching, teaching, rare",
    }
    response = page.post("/cases/new/", sent)
    case = Case.objects.get()
    assert response.headers["Location"] == f"/cases/{case.pk}/upload/"
    assert (case.accession, case.tags) == ("S 77", ["Teaching", "rare"])
    page.post(f"/cases/{case.pk}/edit/", sent | {"diagnosis": "Adenoma"})
    case.refresh_from_db()
    assert case.diagnosis == "Adenoma"
    assert "adenoma" in case.search_text


def test_question_and_notes_are_edited_and_shown(page: Client, case: Case) -> None:
    sent = {"accession": "S-1", "sex": "unknown", "age_band": "unknown"}
    sent |= {"clinical_question": "Margins free?", "notes": "First <b>\r\nSecond"}
    assert page.post(f"/cases/{case.pk}/edit/", sent).status_code == 302
    case.refresh_from_db()
    assert case.notes == "First <b>\nSecond"
    shown = page.get(f"/cases/{case.pk}/").content.decode()
    assert "Margins free?" in shown
    assert "First &lt;b&gt;\nSecond" in shown


def test_the_form_suggests_only_words_of_the_lab(
    page: Client, case: Case, foreign_case: Case
) -> None:
    for path in ("/cases/new/", f"/cases/{case.pk}/edit/"):
        body = text_of(page.get(path))
        assert 'list="words-organ"' in body
        words = body.partition('<datalist id="words-organ">')[2].partition("</datalist>")[0]
        assert '<option value="colon">' in words
        assert "lung" not in body


def test_a_taken_accession_is_shown_at_its_field(page: Client, lab: Lab, case: Case) -> None:
    sent = {"lab": str(lab.pk), "accession": "S-1", "sex": "unknown", "age_band": "unknown"}
    response = page.post("/cases/new/", sent)
    assert response.status_code == 422
    assert "This lab already has a case S-1." in text_of(response)


def test_a_full_case_is_deleted_and_one_click_takes_it_back(page: Client, slide: Slide) -> None:
    text = text_of(page.post(f"/cases/{slide.case_id}/delete/", follow=True))
    assert "It can be restored for 30 days." in text
    assert not Case.objects.exists()
    undo = f"/trash/{TrashEntry.objects.get().pk}/restore/"
    assert undo in text
    response = page.post(undo, follow=True)
    assert response.redirect_chain == [(f"/cases/{slide.case_id}/", 302)]
    assert slide.name in text_of(response)


def test_an_empty_case_is_deleted(page: Client, case: Case) -> None:
    assert page.post(f"/cases/{case.pk}/delete/").status_code == 302
    assert not Case.objects.exists()
