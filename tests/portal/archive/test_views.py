"""Pages: what they show, who may, how many queries they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from portal.archive import extensions
from portal.archive.models import Case, Slide, Upload, Video
from portal.archive.services import case_create
from portal.jobs.services import job_cancel
from portal.labs.models import Lab, User
from tests.portal.archive.support import picture, run_job

pytestmark = pytest.mark.django_db


def text_of(response: Any) -> str:
    return response.content.decode()


def test_the_empty_list_says_so(page: Client) -> None:
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


def test_htmx_gets_the_table_alone(page: Client, case: Case) -> None:
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
    with django_assert_max_num_queries(12):
        page.get("/cases/")


@pytest.mark.parametrize("count", [1, 30])
def test_a_case_costs_the_same_for_one_item_and_thirty(
    page: Client, case: Case, receive: Any, count: int, django_assert_max_num_queries: Any
) -> None:
    for number in range(count):
        receive(case, picture(16, 16, seed=number), f"{number}.png")
    with django_assert_max_num_queries(14):
        body = text_of(page.get(f"/cases/{case.pk}/"))
    assert body.count('data-item-state="preparing"') == count


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


def test_a_taken_accession_is_shown_at_its_field(page: Client, lab: Lab, case: Case) -> None:
    sent = {"lab": str(lab.pk), "accession": "S-1", "sex": "unknown", "age_band": "unknown"}
    response = page.post("/cases/new/", sent)
    assert response.status_code == 422
    assert "There is already a case S-1 in this lab." in text_of(response)


def test_a_full_case_is_not_deleted(page: Client, slide: Slide) -> None:
    response = page.post(f"/cases/{slide.case_id}/delete/", follow=True)
    assert "still holds 1 slide" in text_of(response)
    assert Case.objects.filter(pk=slide.case_id).exists()


def test_an_empty_case_is_deleted(page: Client, case: Case) -> None:
    assert page.post(f"/cases/{case.pk}/delete/").status_code == 302
    assert not Case.objects.exists()


def test_the_form_receives_several_files(page: Client, case: Case) -> None:
    files = [SimpleUploadedFile(f"{n}.png", picture(20, 20, seed=n)) for n in range(2)]
    response = page.post(f"/cases/{case.pk}/upload/", {"file": files})
    assert response.headers["Location"] == f"/cases/{case.pk}/"
    assert sorted(case.slides.values_list("name", flat=True)) == ["0.png", "1.png"]


def test_the_script_gets_json(page: Client, case: Case) -> None:
    sent = {"file": SimpleUploadedFile("a.png", picture())}
    response = page.post(f"/cases/{case.pk}/upload/", sent, headers={"Accept": "application/json"})
    assert response.status_code == 202
    assert response.json()["case_url"] == f"/cases/{case.pk}/"


def test_the_script_learns_why_a_file_was_refused(page: Client, case: Case, storage: Path) -> None:
    sent = {"file": SimpleUploadedFile("a.svs", b"just text")}
    response = page.post(f"/cases/{case.pk}/upload/", sent, headers={"Accept": "application/json"})
    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "a.svs was not stored: the file is a text file" in response.json()["detail"]
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_a_file_beyond_the_limit_names_the_limit(
    page: Client, case: Case, settings: Any, storage: Path
) -> None:
    settings.TESSERA_UPLOAD_MAX_BYTES = 1000
    sent = {"file": SimpleUploadedFile("a.png", picture())}
    response = page.post(f"/cases/{case.pk}/upload/", sent, headers={"Accept": "application/json"})
    assert response.status_code == 413
    assert "the limit is 1,000 bytes" in response.json()["detail"]
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_a_preparing_card_shows_its_job_and_asks_again(
    page: Client, case: Case, receive: Any
) -> None:
    received = receive(case, picture(), "a.png")
    body = text_of(page.get(f"/cases/{case.pk}/"))
    assert f'id="job-{received.job.pk}"' in body
    assert 'hx-trigger="job-ended' in body
    run_job(received.job)
    card = text_of(page.get(f"/items/slide/{received.item.pk}/"))
    assert 'data-item-state="ready"' in card
    assert "hx-get" not in card


def test_a_failed_card_shows_the_reason_and_can_be_tried_again(
    page: Client, case: Case, receive: Any, annotator: User
) -> None:
    received = receive(case, picture(), "a.png")
    job_cancel(job=received.job, user=annotator)
    body = text_of(page.get(f"/cases/{case.pk}/"))
    assert "Cancelled." in body
    assert "Try again" in body
    page.post(f"/items/slide/{received.item.pk}/retry/")
    assert 'data-item-state="preparing"' in text_of(page.get(f"/cases/{case.pk}/"))


def test_a_card_is_deleted_with_its_bytes(
    page: Client, still: Slide, storage: Path, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        page.post(f"/items/slide/{still.pk}/delete/")
    assert not Slide.objects.exists()
    assert not Upload.objects.exists()
    assert not [path for path in storage.rglob("*") if path.is_file()]


def test_the_viewer_gets_its_canvas(page: Client, slide: Slide) -> None:
    body = text_of(page.get(f"/canvases/{slide.canvas_id}/"))
    assert 'id="canvas-data"' in body
    assert "/tiles/" in body


def test_an_item_opens_in_the_viewer(page: Client, video: Video) -> None:
    assert page.get(f"/videos/{video.pk}/").headers["Location"] == f"/canvases/{video.canvas_id}/"


def test_other_apps_add_sections_and_actions(
    page: Client, video: Video, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "case_sections", [lambda request, case: "<b>section</b>"])
    monkeypatch.setattr(extensions, "video_actions", [lambda request, video: "<i>action</i>"])
    body = text_of(page.get(f"/cases/{video.case_id}/"))
    assert "<b>section</b>" in body
    assert "<i>action</i>" in body


PAGES = [
    ("get", "/cases/{case}/"),
    ("get", "/cases/{case}/edit/"),
    ("post", "/cases/{case}/edit/"),
    ("post", "/cases/{case}/delete/"),
    ("get", "/cases/{case}/upload/"),
    ("post", "/cases/{case}/upload/"),
    ("get", "/items/slide/{slide}/"),
    ("post", "/items/slide/{slide}/retry/"),
    ("post", "/items/slide/{slide}/delete/"),
    ("get", "/slides/{slide}/"),
    ("get", "/canvases/{canvas}/"),
]


@pytest.mark.parametrize(("method", "path"), PAGES)
def test_another_labs_ids_are_not_found(
    page: Client, foreign_slide: Slide, method: str, path: str
) -> None:
    assert getattr(page, method)(_filled(path, foreign_slide)).status_code == 404


@pytest.mark.parametrize(("method", "path"), [*PAGES, ("get", "/cases/"), ("get", "/cases/new/")])
def test_nobody_signed_in_is_sent_to_sign_in(
    client: Client, still: Slide, method: str, path: str
) -> None:
    response = getattr(client, method)(_filled(path, still))
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/accounts/login/")


def test_a_viewer_looks_but_does_not_change(client: Client, viewer: User, still: Slide) -> None:
    client.force_login(viewer)
    body = text_of(client.get(f"/cases/{still.case_id}/"))
    assert "Upload" not in body
    assert "Delete" not in body
    for path in ("edit/", "upload/"):
        assert client.get(f"/cases/{still.case_id}/{path}").status_code == 403
    assert client.get("/cases/new/").status_code == 403
    client.post(f"/cases/{still.case_id}/delete/")
    client.post(f"/items/slide/{still.pk}/delete/")
    assert Slide.objects.filter(pk=still.pk).exists()


@pytest.mark.parametrize("role", ["annotator", "reviewer", "manager"])
def test_from_annotator_up_people_upload(
    client: Client, request: pytest.FixtureRequest, case: Case, role: str
) -> None:
    client.force_login(request.getfixturevalue(role))
    assert client.get(f"/cases/{case.pk}/upload/").status_code == 200
    assert client.get(f"/cases/{case.pk}/edit/").status_code == 200


def _filled(path: str, slide: Slide) -> str:
    return path.format(case=slide.case_id, slide=slide.pk, canvas=slide.canvas_id)
