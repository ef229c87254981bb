"""The OpenAPI document is rendered once, whoever asks at once, and small on its way."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import openapi_spec_validator
import pytest
import yaml
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from portal.core.api.schema_document import schema_cache
from tests.threads import at_once

pytestmark = pytest.mark.django_db
URL = "/api/v1/schema/"
SMALL = {"openapi": "3.1.0", "info": {"title": "Ä", "version": "1"}, "paths": {}}


@pytest.fixture(autouse=True)
def _cold() -> Iterator[None]:
    schema_cache.clear()
    yield
    schema_cache.clear()


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Calls that render the document; each takes 0.2 s, so that all threads overlap."""
    calls: list[object] = []

    def made(self: Any, **options: Any) -> Any:
        calls.append(options)
        threading.Event().wait(0.2)  # long enough for the others to come in
        return SMALL

    monkeypatch.setattr(SchemaGenerator, "get_schema", made)
    return calls


def test_twenty_threads_on_a_cold_cache_render_it_once_and_get_the_same(
    rendered: list[object],
) -> None:
    barrier = threading.Barrier(20)
    answers: list[tuple[int, bytes]] = []

    def fetch() -> None:
        barrier.wait()
        response = Client().get(URL, {"format": "json"})
        answers.append((response.status_code, response.content))

    at_once(fetch, count=20)
    assert len(rendered) == 1
    assert len(answers) == 20
    assert set(answers) == {(200, answers[0][1])}
    assert json.loads(answers[0][1]) == SMALL


def test_both_forms_come_from_one_rendering(rendered: list[object], client: Client) -> None:
    as_json = client.get(URL, headers={"Accept": "application/json"})
    as_yaml = client.get(URL)
    assert as_json["Content-Type"] == "application/json"
    assert as_yaml["Content-Type"] == "application/vnd.oai.openapi"
    assert json.loads(as_json.content) == yaml.safe_load(as_yaml.content) == SMALL
    assert len(rendered) == 1


def test_a_client_that_has_it_gets_no_body(rendered: list[object], client: Client) -> None:
    first = client.get(URL)
    again = client.get(URL, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert client.get(URL, headers={"If-None-Match": '"other"'}).status_code == 200
    assert "no-store" not in first["Cache-Control"]


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [("gzip, br", True), ("*", True), ("gzip;q=0, *", False), ("br", False), ("gzip;q=x", False)],
)
def test_the_schema_is_compressed_on_request(
    rendered: list[object], client: Client, accepted: str, is_compressed: bool
) -> None:
    plain = client.get(URL)
    answer = client.get(URL, headers={"Accept-Encoding": accepted})
    assert answer.headers.get("Content-Encoding") == ("gzip" if is_compressed else None)
    content = gzip.decompress(answer.content) if is_compressed else answer.content
    assert content == plain.content
    assert (answer["ETag"] != plain["ETag"]) == is_compressed
    assert "Accept-Encoding" in answer["Vary"]
    same = client.get(URL, headers={"Accept-Encoding": accepted, "If-None-Match": answer["ETag"]})
    assert same.status_code == 304
    assert "Content-Encoding" not in same


def test_a_failed_rendering_is_tried_again(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    client.raise_request_exception = False

    def failing(self: Any, **options: Any) -> Any:
        raise LookupError

    with monkeypatch.context() as patch:
        patch.setattr(SchemaGenerator, "get_schema", failing)
        assert client.get(URL).status_code == 500
    monkeypatch.setattr(SchemaGenerator, "get_schema", lambda self, **options: SMALL)
    assert client.get(URL).status_code == 200


def test_an_unknown_form_is_not_found(rendered: list[object], client: Client) -> None:
    assert client.get(URL, {"format": "xml"}).status_code == 404
    assert client.get(URL, headers={"Accept": "text/html"}).status_code == 406
    assert not rendered


def test_the_real_document_is_small_on_its_way(client: Client) -> None:
    plain = client.get(URL, {"format": "json"})
    small = client.get(URL, {"format": "json"}, headers={"Accept-Encoding": "gzip"})
    assert len(small.content) < len(plain.content) / 5 < 200_000
    assert json.loads(gzip.decompress(small.content))["openapi"].startswith("3.1")


def test_the_page_reads_openapi_3_0(client: Client) -> None:
    script = client.get("/api/v1/docs/", {"script": ""}).content.decode()
    url = re.search(r'url: "(.+?)"', script)
    assert url is not None
    path = url[1].encode().decode("unicode-escape")
    document = client.get(path, {"format": "json"}).json()
    openapi_spec_validator.validate(document)
    assert document["openapi"].startswith("3.0")
    assert document["paths"].keys() == client.get(URL, {"format": "json"}).json()["paths"].keys()
