"""Who sees and changes what on the pages of the archive."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.archive.models import Case, Slide
from portal.labs.models import User
from tests.portal.archive.support import text_of

pytestmark = pytest.mark.django_db

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
    ("get", "/canvases/{canvas}/compare/"),
    ("get", "/canvases/{canvas}/compare/choices/"),
]


@pytest.mark.parametrize(("method", "path"), PAGES)
def test_another_labs_ids_are_not_found(
    page: Client, foreign_slide: Slide, method: str, path: str
) -> None:
    assert getattr(page, method)(_filled(path, foreign_slide)).status_code == 404


@pytest.mark.parametrize(("method", "path"), [*PAGES, ("get", "/cases/"), ("get", "/cases/new/")])
def test_anonymous_is_redirected_to_sign_in(
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
