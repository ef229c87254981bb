"""JSON bodies are bounded before they are parsed, whoever sends them."""

from __future__ import annotations

import io
import json
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework.exceptions import ParseError

from portal.core.api.parsers import MAX_DEPTH, MAX_VALUES, BoundedJsonParser
from portal.core.errors import TooLargeInputError
from portal.core.http.bodies import API_BODY_BYTES
from portal.labs.models import User
from tests.clients import client_of

WIDE = SimpleNamespace(body_limit_bytes=2**26)


def parsed(body: bytes | str, view: Any = None) -> Any:
    data = body.encode() if isinstance(body, str) else body
    return BoundedJsonParser().parse(io.BytesIO(data), None, {"view": view})


@pytest.mark.parametrize("piece", ["[],", "{},", "1,", '"",', "[[]],", "null,"])
def test_many_values_are_refused_before_they_take_memory(piece: str) -> None:
    count = (MAX_VALUES + 10) // piece.count(",")
    body = ("[" + piece * count + "1]").encode()
    tracemalloc.start()
    with pytest.raises(TooLargeInputError, match="values"):
        parsed(body, WIDE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * len(body)


def test_text_counts_as_one_value_whatever_is_in_it() -> None:
    text = '[]{},"\\' * MAX_VALUES
    assert parsed(json.dumps([text]), WIDE) == [text]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_deep_nesting_is_refused(opening: str, closing: str) -> None:
    for levels in (MAX_DEPTH + 1, 900, 100_000):
        with pytest.raises(ParseError, match="deeply"):
            parsed(opening * levels + "1" + closing * levels)
    with pytest.raises(ParseError):
        parsed(opening * 100_000)
    assert parsed("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None


@pytest.mark.parametrize(
    "body", ["1e999", "-1e999", "9" * 21, "[" + "9" * 500_000 + "]", "NaN", "Infinity", "1" * 5000]
)
def test_huge_numbers_are_refused(body: str) -> None:
    with pytest.raises(ParseError):
        parsed(body)


@pytest.mark.parametrize(
    "text",
    [r"\u0000", r"a\\\u0000", r"\ud83d", r"\ude00", r"\ud83dx", r"\ud83d\ud83d", r"\uDE00\uD83D"],
)
def test_characters_that_no_database_stores_are_refused(text: str) -> None:
    with pytest.raises(ParseError, match="null character"):
        parsed(f'{{"name": "{text}"}}')


@pytest.mark.parametrize(
    ("text", "value"),
    [(r"\ud83d\ude00", "😀"), (r"\\u0000", r"\u0000"), (r"\u00e9", "é"), (r"\\ud83d", r"\ud83d")],
)
def test_other_escapes_are_read(text: str, value: str) -> None:
    assert parsed(f'"{text}"') == value


@pytest.mark.parametrize("body", ["", "{", "[1,]", "'a'", b"\xff", "[1] 2", '"'])
def test_invalid_json_is_refused(body: str | bytes) -> None:
    with pytest.raises(ParseError):
        parsed(body)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "body", ['"' + '\\"' * 2**22, '"' + "\\" * 2**22, '["' * 2**17, "\\" * 2**22 + "u"]
)
def test_texts_that_never_end_are_refused_at_once(body: str) -> None:
    with pytest.raises((ParseError, TooLargeInputError)):
        parsed(body, WIDE)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/search/", "/api/v1/cases/", "/api/v1/tokens/"])
def test_an_endpoint_takes_no_more_than_its_bound(viewer: User, path: str) -> None:
    client = client_of(viewer)
    body = b'{"a": "' + b"x" * API_BODY_BYTES + b'"}'
    answer = client.post(path, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert answer["Content-Type"].startswith("application/problem+json")
    assert answer.json()["limit_bytes"] == API_BODY_BYTES


def test_a_body_beyond_its_length_is_not_read() -> None:
    class Endless(io.RawIOBase):
        count = 0

        def read(self, size: int = -1) -> bytes:
            assert 0 <= size <= API_BODY_BYTES + 1
            self.count += size
            return b" " * size

    stream = Endless()
    with pytest.raises(TooLargeInputError):
        BoundedJsonParser().parse(stream)
    assert stream.count == API_BODY_BYTES + 1
