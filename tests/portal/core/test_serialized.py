"""JSON whose text is made once."""

from __future__ import annotations

import json

import pytest

from portal.core.serialized import SerializedDict, SerializedDictEncoder


def test_the_text_is_made_once_and_stored_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    value = SerializedDict(type="Polygon", coordinates=[[1.5, 2.0]])
    first = value.text
    monkeypatch.setattr("portal.core.serialized.json.dumps", pytest.fail)
    assert SerializedDictEncoder().encode(value) is first
    monkeypatch.undo()
    assert json.loads(first) == value == dict(value)


def test_anything_else_is_encoded_as_ever() -> None:
    assert (
        json.dumps({"a": [1, SerializedDict(b=2)]}, cls=SerializedDictEncoder)
        == '{"a": [1, {"b": 2}]}'
    )
