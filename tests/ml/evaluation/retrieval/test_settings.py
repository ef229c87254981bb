"""Settings chosen on one fold and tested on another, on made-up graphs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ml.cli import main
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.settings import (
    DRAWN,
    FOLDS,
    Regions,
    chosen,
    describe,
    drawn_settings,
    validation_of,
)
from ml.roi.graph import RoiGraph
from ml.training.roi.encoder.graph import GraphTrainConfig

DEFAULT = GraphTrainConfig(steps=1, hidden_dim=8, out_dim=8)


@pytest.fixture(scope="module")
def regions() -> Regions:
    """Eight patients, two a fold, each with a region of either label."""
    rng = np.random.default_rng(0)
    records, graphs = [], []
    for number in range(16):
        label = "ab"[number % 2]
        x = rng.normal(size=(6, 5)).astype(np.float32) + 3 * (number % 2)
        edges = np.array([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
        graphs.append(RoiGraph(x, rng.random((6, 2)).astype(np.float32), edges))
        records.append(RoiRecord(Path("x.png"), f"P{number // 2}", label, None, None))
    return Regions(records, graphs, np.arange(16) // 4)


def test_neither_test_nor_validation_is_learned_from(
    regions: Regions, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def told(graphs: list[RoiGraph], labels: list[str], *, config: GraphTrainConfig) -> str:
        seen.extend(graphs)
        return "network"

    def embedded(network: str, graphs: list[RoiGraph]) -> np.ndarray:
        return np.stack([graph.x.mean(axis=0) for graph in graphs])

    monkeypatch.setattr("ml.evaluation.retrieval.settings.train_graph_encoder", told)
    monkeypatch.setattr("ml.evaluation.retrieval.settings.embed_graphs", embedded)
    assert regions.score(DEFAULT, 3, 3, labelled=True) == 1.0
    folds = {
        int(regions.fold[i]) for i, g in enumerate(regions.graphs) if any(g is s for s in seen)
    }
    assert folds == {1, 2} and validation_of(3) == 0


def test_what_was_worked_out_is_kept(regions: Regions, tmp_path: Path) -> None:
    trials = [DEFAULT, *drawn_settings(DEFAULT, 2)]
    found = chosen(regions, trials, 0, labelled=False, folder=tmp_path)
    assert 0 < found["validation"] <= 1
    assert set(found["chosen"]) == set(DRAWN)
    files = sorted(tmp_path.iterdir())
    assert len(files) in (4, 5)  # three validations; the default and the best tested, or one
    validations = [path for path in files if path.name.startswith(f"0-{validation_of(0)}-")]
    validations[-1].write_text('{"map_at_10": 2.0}')  # only who reads it again can know it
    assert chosen(regions, trials, 0, labelled=False, folder=tmp_path)["validation"] == 2.0


def test_settings_are_drawn_by_the_seed_and_the_table_has_every_fold() -> None:
    assert drawn_settings(DEFAULT, 3) == drawn_settings(DEFAULT, 3)
    assert len({config.learning_rate for config in drawn_settings(DEFAULT, 3)}) == 3
    row = {"chosen": {"learning_rate": 0.001, "out_dim": 8}, "validation": 0.5, "test": 0.25}
    choices = [{"fold": fold, **row, "test_of_defaults": 0.5} for fold in range(FOLDS)]
    text = describe(
        {
            "data_set": "x",
            "encoder": "e 1",
            "network": "gcn",
            "trials": 3,
            "steps": 20,
            "seed": 4,
            "choices": {"supervised": choices},
        }
    )
    assert "the default, 20 steps each; seed 4." in text
    assert "| supervised | 3 | 0.500 | 0.250 | 0.500 | learning_rate 0.001, out_dim 8 |" in text
    assert "| supervised | mean | 0.500 | 0.250 | 0.500 |  |" in text


def test_the_command_writes_its_table_and_goes_on_where_it_was(tmp_path: Path) -> None:
    rows = ["image,patient,label,mpp,geometry\n"]
    rng = np.random.default_rng(0)
    for patient in range(8):
        for label in ("a", "b"):
            name = f"{patient}{label}.png"
            noise = rng.integers(80, 220, (20 if label == "a" else 5, 20, 3), dtype=np.uint8)
            Image.fromarray(noise).resize((500, 500)).save(tmp_path / name)
            rows.append(f"{name},P{patient},{label},,\n")
    (tmp_path / "rois.csv").write_text("".join(rows))
    card, out = tmp_path / "card.md", tmp_path / "out"
    card.write_text("<!-- figures: settings -->\n<!-- end figures -->\n")
    words = ["evaluate", "settings", str(tmp_path), "--trials", "1", "--steps", "1", "--seed", "4"]
    words += ["--out", str(out), "--card", str(card), "--figures", str(tmp_path / "f.json")]
    assert main(words) == 0
    first = card.read_text()
    assert describe(json.loads((tmp_path / "f.json").read_text())).strip() in first
    assert first.count("| self-supervised |") == FOLDS + 1
    kept = sorted(out.rglob("*.json"))
    (out / "supervised" / kept[-1].name).write_text('{"map_at_10": 0.125}')
    before = {path: path.stat().st_mtime_ns for path in kept}
    assert main(words) == 0
    assert {path: path.stat().st_mtime_ns for path in sorted(out.rglob("*.json"))} == before
    assert "0.125" in card.read_text()
