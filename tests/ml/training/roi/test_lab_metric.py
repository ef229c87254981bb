"""``train metric``: from the JSON of embed to a file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ml.cli import main
from ml.index.metric_learning.metric import read_metric


def regions():
    rng = np.random.default_rng(0)
    rows = []
    for patient in range(10):
        offset = 6 * rng.standard_normal()
        for number in range(6):
            vector = rng.standard_normal(6)
            vector[0] += offset
            vector[1] += 2 * (-1) ** number
            label = "ab"[number % 2]
            rows.append({"patient": f"p{patient}", "label": label, "vector": vector.tolist()})
    return rows


def test_a_metric_is_written_with_its_figures(tmp_path):
    (tmp_path / "vectors.json").write_text(json.dumps({"regions": regions()}))
    out, report = tmp_path / "metric.npz", tmp_path / "report.json"
    words = ["train", "metric", str(tmp_path / "vectors.json"), "--out", str(out)]
    assert main([*words, "--json", str(report)]) == 0
    figures = json.loads(report.read_text())
    assert (figures["regions"], figures["labels"], figures["patients"]) == (60, 2, 10)
    assert figures["chosen"] == read_metric(out).chosen != "identity"
    assert figures["score"] > figures["plain"]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "not json",
        json.dumps({"regions": [{"vector": [1.0]}]}),
        json.dumps({"regions": [*regions()[:3], {"patient": "p", "label": "a", "vector": [1.0]}]}),
    ],
)
def test_an_unsupported_file_fails_with_one_line(tmp_path, capsys, text):
    (tmp_path / "x.json").write_text(text)
    out = tmp_path / "metric.npz"
    assert main(["train", "metric", str(tmp_path / "x.json"), "--out", str(out)]) == 2
    assert "x.json: expected what `python -m ml embed" in capsys.readouterr().err
    assert not out.exists()


def test_a_card_gets_the_scores_of_test_patients(tmp_path):
    (tmp_path / "vectors.json").write_text(json.dumps({"regions": regions()}))
    card = tmp_path / "card.md"
    card.write_text("# A\n<!-- figures: here -->\n<!-- end figures -->\n")
    words = ["train", "metric", str(tmp_path / "vectors.json"), "--out", str(tmp_path / "m.npz")]
    words += ["--card", str(card), "--section", "here"]
    assert main(words) == 0
    assert "Refused: There is too little to learn from" in card.read_text()
    assert main([*words, "--min-test-patients", "3"]) == 0
    text = card.read_text()
    assert "60 regions of 10 patients, 7 of them learned from" in text
    assert "| map_at_10 | 3 |" in text and "- a, 9 regions:" in text
