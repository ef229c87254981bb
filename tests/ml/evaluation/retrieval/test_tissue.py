"""Searches with whole slides: hand-worked scores, and a small run from files to a table."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from PIL import Image

from ml.cli import main
from ml.evaluation.retrieval import tissue
from ml.evaluation.retrieval.tissue import _Query, chance_score, mean_vector, tissue_score
from tests.ml.training.roi.conftest import dense_tissue


def queries(places, right):
    return _Query(
        np.zeros(2, np.float32), np.array([[p, 0] for p in places], np.float32), np.array(right)
    )


def test_scores_equal_hand_worked_values():
    first = queries([3, 1, 2, 4], [True, False, True, False])  # wrong, right, right, wrong
    second = queries([1, 2], [True, False])
    score = tissue_score([first, second])
    assert (score["slides"], score["gallery"]) == (2, 3.0)
    assert score["first"] == 0.5
    assert score["precision"] == 0.5
    assert score["ap"] == pytest.approx(((1 / 2 + 2 / 3) / 2 + 1) / 2, abs=1e-4)


def test_chance_is_the_share_of_relevant_regions():
    score = chance_score([queries(range(40), [at < 10 for at in range(40)])])
    assert score["first"] == pytest.approx(0.25, abs=0.03)
    assert score["precision"] == pytest.approx(0.25, abs=0.02)


def test_the_mean_vector_has_the_mean_direction_and_length():
    vectors = np.array([[3, 0], [0, 1]], np.float32)
    vector = mean_vector(vectors)
    assert np.linalg.norm(vector) == pytest.approx(2)
    assert vector[0] / vector[1] == pytest.approx(3)


@pytest.mark.slow
def test_a_run_returns_its_scores(tmp_path, monkeypatch, capsys):
    def picture(name, seed, nuclei):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(dense_tissue(600, 600, seed=seed, nuclei_per_mpx=nuclei)).save(path)

    rows = []
    for patient in range(4):
        for number in range(2):
            name = f"p{patient}-{number}.png"
            picture(f"atlas/{name}", 2 * patient + number, 600 if patient % 2 else 4000)
            rows.append({"file": name, "patient": str(patient), "label": "ab"[patient % 2]})
    with (tmp_path / "atlas/index.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["file", "patient", "label"])
        table.writeheader()
        table.writerows(rows)
    for number in range(2):
        picture(f"sections/s{number}.png", 20 + number, 600)
    picture("other.png", 30, 5000)
    monkeypatch.setattr(tissue, "INDEX", "atlas/index.csv")
    monkeypatch.setattr(tissue, "WHERE", {})
    monkeypatch.setattr(tissue, "SECTIONS", "sections")
    monkeypatch.setattr(tissue, "ELSEWHERE", ("other.png",))
    out = tmp_path / "out.json"
    words = ["evaluate", "tissue", "--data", str(tmp_path), "--regions", "3", "--json", str(out)]
    assert main(words) == 0
    data = json.loads(out.read_text())["scores"]
    assert set(data) == {"organ", "next section"}
    for methods in data.values():
        assert set(methods) == {"roi-default", "HSV histogram", "chance"}
    organ, sections = data["organ"]["roi-default"], data["next section"]["roi-default"]
    assert (organ["slides"], organ["gallery"], organ["first"]) == (4, 6.0, 1.0)
    assert (sections["slides"], sections["gallery"]) == (2, 6.0)
    assert data["organ"]["chance"]["first"] == pytest.approx(1 / 3, abs=0.05)
    assert "First is right" in capsys.readouterr().out
    assert main([*words[:4], "--regions", "0"]) == 2
