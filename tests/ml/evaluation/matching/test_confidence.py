"""A learned confidence against agreement, on made-up candidates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ml.evaluation.matching.confidence import MutualNeighbours, compared, confidence_line


def _pair(seed: int, *, telling: float, share: float = 0.5) -> MutualNeighbours:
    """Half of 400 candidates are right; agreement keeps half of these and nothing else."""
    rng = np.random.default_rng(seed)
    right = np.arange(400) < 400 * share
    features = rng.normal(size=(400, 5))
    features[:, 1] += telling * right
    return MutualNeighbours(features, right, right & (np.arange(400) % 2 == 0))


def test_both_rules_are_judged_at_the_same_recall() -> None:
    pairs = [_pair(i, telling=6.0) for i in range(4)]
    found = compared(pairs, [_pair(9, telling=0.0, share=0.0)], [0, 1, 0, 1])
    assert found["agreement"] == {"precision": 1.0, "recall": 0.5, "unrelated": 0.0}
    assert found["confidence"]["recall"] == pytest.approx(0.5, abs=0.08)
    assert found["confidence"]["precision"] > 0.999


def test_the_card_says_what_the_committed_result_says() -> None:
    docs = Path(__file__).resolve().parents[4] / "docs"
    file = docs / "results" / "keypoints.confidence.json"
    found = json.loads(file.read_text(encoding="utf-8"))["confidence"]
    line = confidence_line(found)
    assert line in (docs / "models" / "keypoints.md").read_text(encoding="utf-8")
    for rules in found.values():  # why agreement alone is what ships
        assert rules["agreement"]["precision"] > rules["confidence"]["precision"]
        assert rules["agreement"]["unrelated"] <= rules["confidence"]["unrelated"]


def test_what_tells_nothing_gives_the_share_of_right_candidates() -> None:
    pairs = [_pair(i, telling=0.0) for i in range(4)]
    found = compared(pairs, [_pair(9, telling=0.0, share=0.0)], [0, 1, 0, 1])
    assert found["confidence"]["precision"] == pytest.approx(0.5, abs=0.06)
    assert found["confidence"]["unrelated"] == pytest.approx(200, abs=60)
    assert "`x`: agreement keeps 0.500 of the right" in confidence_line({"x": found})
