"""docs/papers.md says what docs/results says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ml.evaluation.common.card_table import card_table, read_results
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
    "schedule": ("triplet.schedule", _table),
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


def test_the_papers_schedule_stands_beside_what_ships_and_the_best_form_of_sift() -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    found = re.search("<!-- figures: schedule-protocols -->\n(.*?)\n<!-- end", page, re.DOTALL)
    assert found is not None
    names = [f"keypoints.{name}" for name in ("papers", "hard", "epipolar", "carried")]
    names += [f"triplet.{name}" for name in ("papers", "hard", "epipolar")]
    files = [ROOT / "docs" / "results" / f"{name}.json" for name in names]
    if found[1] == NOT_RUN:
        assert not files[-1].exists()
    else:
        rows = ["triplet paper", "triplet", "sift", "sift (best form)"]
        assert found[1] == card_table(read_results(files), names=rows)
