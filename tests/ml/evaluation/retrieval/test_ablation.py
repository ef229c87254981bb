"""The ablation of graph networks; what takes seconds to import is imported by its test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from ml.cli import main


def test_every_combination_has_a_score(tmp_path: Path) -> None:
    from ml.networks.graph_encoders import GRAPH_ENCODERS

    rows = ["image,patient,label,mpp,geometry\n"]
    for patient in range(4):
        for label, grain_px in (("fine", 4), ("coarse", 16)):
            rng = np.random.default_rng((patient, grain_px))
            noise = rng.integers(90, 220, (800 // grain_px, 800 // grain_px, 3), dtype=np.uint8)
            name = f"{patient}-{label}.png"
            Image.fromarray(noise).resize((800, 800)).save(tmp_path / name)
            rows.append(f"{name},P{patient},{label},,\n")
    (tmp_path / "rois.csv").write_text("".join(rows))
    words = ["evaluate", "ablation", str(tmp_path), "--steps", "1", "--seeds", "1", "--folds", "2"]
    card = tmp_path / "card.md"
    card.write_text("# Ablation\n<!-- figures: ablation -->\n<!-- end figures -->\n")
    words += ["--card", str(card), "--json", str(tmp_path / "out.json")]
    assert main(words) == 0
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["labels"] == ["coarse", "fine"]
    scores = result["map_at_10"]
    expected = {
        f"{name}, {how}, {sampling}"
        for sampling, names in (("sobol", GRAPH_ENCODERS), ("grid", ("gcn",)))
        for name in names
        for how in ("supervised", "self-supervised")
    }
    assert set(scores) == expected and all(0 <= score <= 1 for score in scores.values())
    assert "| gcn | supervised | grid |" in card.read_text()


def test_the_committed_card_agrees_with_its_result() -> None:
    from ml.evaluation.retrieval.ablation import describe

    docs = Path(__file__).resolve().parents[4] / "docs"
    result = json.loads((docs / "results" / "roi-ablation.json").read_text(encoding="utf-8"))
    card = (docs / "models" / "roi-ablation.md").read_text(encoding="utf-8")
    assert f"<!-- figures: ablation -->\n{describe(result)}\n<!-- end figures -->" in card
