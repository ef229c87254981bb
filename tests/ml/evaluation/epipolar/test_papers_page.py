"""Figures of docs/papers.md are those of docs/results."""

from __future__ import annotations

import json
from pathlib import Path

from ml.evaluation.common.card_table import card_table, read_results
from ml.evaluation.epipolar.tables import poses_table

ROOT = Path(__file__).resolve().parents[4]
RESULTS = ROOT / "docs" / "results"


def section(name: str) -> str:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    return page.partition(f"<!-- figures: {name} -->\n")[2].partition("\n<!-- end")[0]


def result(name: str) -> dict[str, object]:
    data: dict[str, object] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return data


def test_the_table_of_poses_equals_its_result() -> None:
    assert section("poses") == poses_table(result("keypoints.epipolar"))


def test_the_table_of_the_paper_schedule_equals_its_result() -> None:
    assert section("schedule") == result("triplet.schedule")["table"]


def test_the_paper_schedule_is_compared_with_the_shipped_weights_and_sift() -> None:
    names = [f"keypoints.{name}" for name in ("papers", "hard", "epipolar", "carried")]
    names += [f"triplet.{name}" for name in ("papers", "hard", "epipolar")]
    rows = ["triplet paper", "triplet", "sift", "sift (best form)"]
    files = [RESULTS / f"{name}.json" for name in names]
    assert section("schedule-protocols") == card_table(read_results(files), names=rows)
