from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client, RequestFactory

from portal.core import views
from portal.core.errors import ConflictError
from portal.core.middleware import PortalErrorMiddleware

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
@pytest.mark.parametrize("url", ["/api/v1/nothing/", "/api/v2/cases/", "/api/v1/me/more/"])
def test_an_unknown_url_of_the_api_is_a_problem(client: Client, method: str, url: str) -> None:
    response = getattr(client, method)(url)
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    assert url in response.json()["detail"]


def test_a_missing_slash_is_pointed_out(client: Client) -> None:
    assert "end with a slash" in client.post("/api/v1/cases").json()["detail"]


def test_an_unknown_page_is_friendly(client: Client) -> None:
    response = client.get("/nothing/")
    assert response.status_code == 404
    assert "There is no such page" in response.content.decode()


def test_a_bug_in_a_page_shows_the_static_page() -> None:
    response = views.server_error(RequestFactory().get("/cases/"))
    assert response.status_code == 500
    assert "Something went wrong on our side" in response.content.decode()


def test_a_bug_in_the_api_is_a_problem_without_a_trace(
    settings: Any, monkeypatch: pytest.MonkeyPatch, page: Client
) -> None:
    def broken(user: object) -> None:
        raise RuntimeError("the secret plan")

    monkeypatch.setattr("portal.labs.selectors.memberships_of", broken)
    page.raise_request_exception = False
    response = page.get("/api/v1/me/")
    assert response.status_code == 500
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "internal-error"
    assert "secret plan" not in response.content.decode()


@pytest.mark.parametrize(
    ("path", "htmx", "media_type", "has_page"),
    [
        ("/cases/", False, "text/html", True),
        ("/cases/", True, "text/html", False),
        ("/api/v1/x/", False, "application/problem+json", False),
    ],
)
def test_errors_are_a_page_a_fragment_or_json_by_client(
    path: str, htmx: bool, media_type: str, has_page: bool, client: Client
) -> None:
    request = client.get("/nothing/").wsgi_request
    request.path, request.htmx = path, htmx  # type: ignore[attr-defined]
    middleware = PortalErrorMiddleware(lambda _: None)  # type: ignore[arg-type, return-value]
    response = middleware.process_exception(request, ConflictError("Twice is too often."))
    assert response is not None
    assert response.status_code == 409
    assert response["Content-Type"].split(";")[0] == media_type
    assert "Twice is too often." in response.content.decode()
    assert ("<html" in response.content.decode()) == has_page
    assert middleware.process_exception(request, ValueError()) is None


def test_a_stale_form_gets_advice(page: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    response = strict.post("/accounts/login/", {"login": "a@b.example", "password": "x"})
    assert response.status_code == 403
    assert "no longer valid" in response.content.decode()


def test_the_schema_names_the_ways_to_sign_in(client: Client) -> None:
    schema = client.get("/api/v1/schema/?format=json").json()
    schemes = schema["components"]["securitySchemes"]
    assert schemes["bearerToken"]["scheme"] == "bearer"
    assert "cookieAuth" in schemes
    answers = schema["paths"]["/api/v1/me/"]["get"]["responses"]
    assert "application/problem+json" in answers["default"]["content"]


@pytest.mark.parametrize("url", ["/api/v1/docs/", "/accounts/login/", "/nothing/"])
def test_no_page_has_an_inline_script(client: Client, url: str) -> None:
    response = client.get(url)
    text = response.content.decode()
    assert "script-src 'self'" in response["Content-Security-Policy"]
    scripts = re.findall(r"<script[^>]*>", text)
    assert all("src=" in tag or "application/json" in tag for tag in scripts)
    assert not re.search(r"<[^>]+\son[a-z]+=", text)


def test_every_page_can_be_used_without_a_mouse(page: Client) -> None:
    text = page.get("/lab/").content.decode()
    assert 'class="skip-link" href="#main"' in text
    assert '<main class="page" id="main" tabindex="-1">' in text
    assert 'lang="en"' in text
    assert len(re.findall(r"<h1[ >]", text)) == 1
