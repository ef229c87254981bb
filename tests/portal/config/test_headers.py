"""Headers of every page and every kind of answer, as production sends them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import URLPattern, URLResolver, get_resolver

from portal.labs.models import User
from tests.clients import client_of

pytestmark = pytest.mark.django_db
YEAR_S = 31_536_000
SCHEMA = "/api/v1/schema/"  # in each version, names no person and nothing of a lab


def _paths(patterns: Any = None, prefix: str = "/") -> Iterator[str]:
    """Every address that takes no argument."""
    for entry in patterns if patterns is not None else get_resolver().url_patterns:
        route = prefix + str(entry.pattern).lstrip("^").rstrip("$").replace("\\Z", "")
        if isinstance(entry, URLResolver):
            yield from _paths(entry.url_patterns, route)
        elif isinstance(entry, URLPattern) and not set("<(?*+") & set(route):
            yield route


@pytest.fixture
def browser(manager: User) -> Iterator[Client]:
    with override_settings(SECURE_HSTS_SECONDS=YEAR_S, SECURE_HSTS_INCLUDE_SUBDOMAINS=True):
        client = client_of(manager)
        yield client


def _check(response: HttpResponse) -> None:
    headers = response.headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";")
    )
    assert policy["script-src"] == policy["style-src"] == policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == "'none'"
    assert policy["form-action"] == policy["base-uri"] == policy["connect-src"] == "'self'"
    assert headers["Strict-Transport-Security"].startswith(f"max-age={YEAR_S}")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]
    is_same_for_all = response.request["PATH_INFO"].startswith(SCHEMA)
    assert ("no-store" in headers["Cache-Control"]) != is_same_for_all


@pytest.mark.parametrize("path", sorted(set(_paths())))
def test_every_page_and_list_is_private_and_runs_no_foreign_script(
    browser: Client, path: str
) -> None:
    _check(browser.get(path, secure=True))


@pytest.mark.parametrize("path", ["/nothing/", "/api/v1/nothing/", "/accounts/login/"])
def test_errors_and_pages_without_a_session_have_the_headers(browser: Client, path: str) -> None:
    _check(browser.get(path, secure=True))
    browser.logout()
    _check(browser.get(path, secure=True))


def test_no_template_holds_a_script_or_an_event_handler() -> None:
    import re
    from pathlib import Path

    root = Path(__file__).resolve().parents[3] / "templates"
    matches = [
        f"{path.name}: {match[0]}"
        for path in root.rglob("*.html")
        for match in re.finditer(
            r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>|<style|\son\w+\s*=|javascript:",
            path.read_text(),
        )
    ]
    assert not matches
