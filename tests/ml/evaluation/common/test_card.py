"""``evaluate card``: figures come from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ml.cli import main
from tests.ml.evaluation.common.test_card_table import EPIPOLAR, PAPERS

ROOT = Path(__file__).resolve().parents[4]
CARDS = {
    "vit": ("vit", "tessera", "sift", "sift (best form)"),
    "tessera": ("tessera", "sift", "sift (best form)", "akaze", "akaze (best form)"),
    "keypoints": (),
}
"""The rows of each committed card."""


def test_the_table_of_a_card_has_the_requested_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card, files = tmp_path / "card.md", [tmp_path / "a.json", tmp_path / "b.json"]
    for file, result in zip(files, (PAPERS, EPIPOLAR), strict=True):
        file.write_text(json.dumps(result))
    card.write_text("<!-- figures: matching -->\nold\n<!-- end figures -->\n")
    words = ["evaluate", "card", *map(str, files), "--card", str(card)]
    assert main([*words, "--descriptors", "sift"]) == 0
    assert "| sift | 0.9000 | 0.8000 | 0.1000 | 0.7000 | 1.5000 | 0.2500 |" in card.read_text()
    assert "orb" not in card.read_text() and "old" not in card.read_text()
    assert "| sift | 0.9000 |" in capsys.readouterr().out
    assert main([*words, "--descriptors", "surf"]) == 2
    assert "descriptor 'surf': expected one of sift, orb" in capsys.readouterr().err


@pytest.mark.parametrize("name", CARDS)
def test_the_committed_cards_agree_with_their_results(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    committed = ROOT / "docs" / "models" / f"{name}.md"
    card = tmp_path / "card.md"
    card.write_text(committed.read_text())
    results = [
        f"{ROOT}/docs/results/keypoints.{p}.json"
        for p in ("papers", "hard", "unrelated", "carried")
    ]
    words = ["evaluate", "card", *results, f"{ROOT}/docs/results/keypoints.epipolar.json"]
    chosen = ["--descriptors", *CARDS[name]] if CARDS[name] else []
    assert main([*words, *chosen, "--card", str(card)]) == 0
    assert card.read_text() == committed.read_text()
