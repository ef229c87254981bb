"""docs/papers.md says what docs/results says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ml.evaluation.epipolar.tables import elsewhere_table, poses_table
from ml.evaluation.retrieval.settings import describe

ROOT = Path(__file__).resolve().parents[4]
NOT_RUN = "Not run."


def _table(result: Mapping[str, Any]) -> str:
    return str(result["table"])


SECTIONS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "rivals": ("rivals", _table),
    "folds": ("folds", _table),
    "settings": ("settings", describe),
    "poses": ("keypoints.epipolar", poses_table),
    "elsewhere": ("keypoints.epipolar", elsewhere_table),
    "strategies": ("strategies", poses_table),
}
"""What a section is made from, and how."""


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_holds_the_figures_of_the_results_or_says_that_there_are_none(
    section: str,
) -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    name, told = SECTIONS[section]
    found = re.search(f"<!-- figures: {section} -->\n(.*?)\n<!-- end", page, re.DOTALL)
    assert found is not None
    file = ROOT / "docs" / "results" / f"{name}.json"
    if found[1] == NOT_RUN:
        assert not file.exists() or "cross_sequence" not in json.loads(file.read_text())
    else:
        assert found[1] == told(json.loads(file.read_text(encoding="utf-8"))).strip("\n")
