"""Lines carry the ids of request and job, and leave secrets and patients out."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from portal.core.observe import ids
from portal.core.observe.logs import LEFT_OUT, JsonFormatter, LineFormatter, scrub


def _record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    record = logging.LogRecord("portal.x", logging.INFO, __file__, 1, message, args, None)
    record.__dict__.update(extra)
    return record


def test_a_json_line_has_the_ids_of_request_and_job() -> None:
    with ids.log_ids(request="req-12345", job="job-1"):
        line = json.loads(JsonFormatter().format(_record("done %d", 3, fields={"status": 200})))
    assert line["message"] == "done 3"
    assert (line["request_id"], line["job_id"], line["status"]) == ("req-12345", "job-1", 200)
    assert line["level"] == "info" and line["logger"] == "portal.x"
    assert line["time"].endswith("+00:00")
    assert "job_id" not in json.loads(JsonFormatter().format(_record("outside")))


def test_a_readable_line_has_the_ids_of_request_and_job() -> None:
    with ids.log_ids(request="req-12345", job="job-1"):
        assert "[request=req-12345 job=job-1]: hello" in LineFormatter().format(_record("hello"))
    assert LineFormatter().format(_record("hello")).endswith("INFO portal.x: hello")


def test_a_stack_is_part_of_the_line_without_the_values_of_rows() -> None:
    """PostgreSQL quotes the row that broke a constraint."""
    line = "duplicate key\nDETAIL:  Key (accession)=(T-1001 Miller) already exists."
    try:
        raise ValueError(line)
    except ValueError:
        record = _record("bug")
        record.exc_info = sys.exc_info()
    for formatter in (JsonFormatter(), LineFormatter()):
        text = formatter.format(record)
        assert "duplicate key" in text and "Miller" not in text


SECRETS = (
    "Authorization: Bearer tess_abcdefghij1234567890",
    "tess_Zm9vYmFyYmF6cXV4",
    "GET /tiles/eyJhbGciOiJIUzI1NiJ9:1tQz9a:Kx0aB3cD4eF5gH6iJ7kL8mN9oP0q/3/1/2.jpg",
    "Not Found: /invitations/q8Zk2LrX0bTnW5vYc7AeHs9JdUfGiMoP1RtEyKzQ/",
    "GET /cases/?q=Miller",
    "redis://:hunter22@broker:6379/0",
    "sessionid=0a1b2c3d4e5f6g7h8i9j",
    "password='correct horse'",
)


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_left_out(text: str) -> None:
    stored = scrub(text)
    assert LEFT_OUT in stored
    for secret in ("tess_", "eyJ", "q8Zk2", "Miller", "hunter22", "0a1b2c3d", "correct"):
        assert secret not in stored


@pytest.mark.parametrize(
    "text",
    [
        "job 3f2504e0-4f89-41d3-9a0c-0305e82c3301: message not sent",
        "job 3f2504e0-4f89-41d3-9a0c-0305e82c3301 slide_ingest: attempt 1 begins",
        "asset 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 is missing",
        "portal.archive.services.uploads.receiving.handlers.reading failed",
        "index file of snapshot 12 cannot be read",
    ],
)
def test_identifiers_are_not_redacted(text: str) -> None:
    assert scrub(text) == text
