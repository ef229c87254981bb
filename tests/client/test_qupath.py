"""The script for QuPath against the schema: what it asks, sends and reads is there."""

from __future__ import annotations

import re
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from tests.client.conftest import SOURCES

SCRIPT = (SOURCES.parent / "qupath" / "tessera.groovy").read_text()
ASKED = re.compile(r"portal\.(get|post)\(([\"'])(.+?)\2, \[(.*?)\]")
READ = {
    "canvas": "Canvas",
    "roi": "Roi",
    "problem": "Problem",
    "report": "ImportReport",
    "group": "ImportGroup",
}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return SchemaGenerator().get_schema(public=True)


def requests() -> list[tuple[str, str, set[str]]]:
    """Method, address and names of parameters of each request of the script."""
    return [
        (method, re.sub(r"\$\{[\w.]+\}", "{id}", path), set(re.findall(r"(\w+):", result)))
        for method, _, path, result in ASKED.findall(SCRIPT)
    ]


def test_the_script_requests_existing_addresses(schema):
    request_list = requests()
    assert {(method, path) for method, path, _ in request_list} == {
        ("get", "canvases/{id}/"),
        ("get", "canvases/{id}/roi-file/"),
        ("post", "canvases/{id}/roi-file/"),
        ("get", "rois/"),
    }
    assert len(request_list) == len(re.findall(r"portal\.(?:get|post)\(", SCRIPT))
    for method, path, message in request_list:
        operation = schema["paths"][f"/api/v1/{path}"][method]
        known = {
            parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"
        }
        assert message <= known, (method, path)


def test_the_script_uses_the_media_types_of_the_api(schema):
    both = schema["paths"]["/api/v1/canvases/{id}/roi-file/"]
    (sent,) = re.findall(r"header\('Content-Type', '(.+?)'\)", SCRIPT)
    assert sent in both["post"]["requestBody"]["content"]
    assert "application/geo+json" in both["get"]["responses"]["200"]["content"]
    headers = {row["name"] for row in both["post"]["parameters"] if row["in"] == "header"}
    assert "Idempotency-Key" in headers and "'Idempotency-Key'" in SCRIPT


@pytest.mark.parametrize("name", READ)
def test_the_fields_that_it_reads_are_there(schema, name):
    read = set(re.findall(rf"\b{name}\.(\w+)\b(?!\()", SCRIPT))
    assert read and read <= set(schema["components"]["schemas"][READ[name]]["properties"])


def test_the_script_stores_no_token_and_follows_no_redirect():
    assert not re.search(r"tess_\w", SCRIPT) and "followRedirects" not in SCRIPT
    stored = re.findall(r"setProperty\(([^,]+),", SCRIPT)
    assert stored == ["'tessera.canvas'", "VERSIONS + canvas.id"]
