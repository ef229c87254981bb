"""Every answer says which request it was; the log says so too, and nothing of its address."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.test import Client

from portal.core.observe import ids

pytestmark = pytest.mark.django_db


def test_every_answer_has_a_request_id(client: Client) -> None:
    first, second = client.get("/healthz"), client.get("/healthz")
    assert len(first["X-Request-ID"]) == 32
    assert first["X-Request-ID"] != second["X-Request-ID"]
    assert ids.request_id() == "", "nothing is left over for the next one"


def test_a_valid_id_of_a_proxy_is_used_and_an_invalid_one_replaced(client: Client) -> None:
    sent = client.get("/healthz", headers={"X-Request-ID": "proxy-1234.a_b"})
    assert sent["X-Request-ID"] == "proxy-1234.a_b"
    for unfit in ("short", "x" * 65, "two words here", 'a"quoted"one'):
        assert client.get("/healthz", headers={"X-Request-ID": unfit})["X-Request-ID"] != unfit


def test_problems_and_error_pages_show_the_id(page: Client) -> None:
    client = Client()
    problem = client.get("/api/v1/cases/")
    assert problem.json()["request_id"] == problem["X-Request-ID"]
    lost = client.get("/api/v1/nothing-here/")
    assert lost.json()["request_id"] == lost["X-Request-ID"]
    missing = page.get("/nothing-here/")
    assert missing.status_code == 404
    assert missing["X-Request-ID"] in missing.content.decode()


def test_a_broken_page_shows_the_id(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise RuntimeError("bug")

    monkeypatch.setattr("portal.jobs.selectors.jobs.job_list", broken)
    page.raise_request_exception = False
    answer = page.get("/jobs/")
    assert answer.status_code == 500
    assert answer["X-Request-ID"] in answer.content.decode()


def test_a_line_for_each_request_has_route_and_status_but_no_address(
    page: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="portal.request"):
        page.get("/cases/?q=Miller")
        page.get("/jobs/3f2504e0-4f89-41d3-9a0c-0305e82c3301/")
    first, second = [record for record in caplog.records if record.name == "portal.request"]
    assert "Miller" not in first.getMessage()
    fields = second.__dict__["fields"]
    assert (fields["route"], fields["status"]) == ("jobs/<uuid:job_id>/", 404)
    assert fields["duration_ms"] > 0
