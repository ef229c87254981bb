"""Rows of one descriptor merged into a result of many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ml.errors import BadInputError
from ml.evaluation.common.output import update_result

OLD: dict[str, Any] = {
    "options": {"pairs": 3},
    "versions": {"a": "1", "b": "1"},
    "papers": {"a": {"x": 0.5}, "b": {"x": 0.25}},
}


def test_only_the_new_rows_change(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps(OLD))
    row = {"x": 0.75, "y": float("nan"), "seconds": 2.0, "curves": {"core": {"p": [1.0], "q": 2}}}
    new = {
        "options": {"pairs": 3, "seed": 1},
        "versions": {"b": "2"},
        "papers": {"b": row},
    }
    merged = update_result(path, new)
    data = json.loads(path.read_text())
    stored = {"x": 0.75, "y": None, "curves": {"core": {"q": 2}}}
    assert data["papers"] == {"a": {"x": 0.5}, "b": stored}
    assert data["versions"] == {"a": "1", "b": "2"}
    assert data["options"] == {"pairs": 3}
    assert merged == data  # what a card is written from


def test_a_result_of_other_options_or_protocols_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps(OLD))
    with pytest.raises(BadInputError, match="options: expected"):
        update_result(path, {"options": {"pairs": 4}, "papers": {}})
    with pytest.raises(BadInputError, match="hard"):
        update_result(path, {"options": {"pairs": 3}, "hard": {"b": {}}})
    assert json.loads(path.read_text()) == OLD
