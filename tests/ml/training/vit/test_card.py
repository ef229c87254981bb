"""The figures of a run of ``train vit``: the card, the log, the plot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ml.keypoints.descriptors.vit_dense import CALIBRATED, RATIO
from ml.training.vit.card import card_text, plot_losses, rules_text

DOCS = Path(__file__).resolve().parents[4] / "docs"
SUMMARY = {
    "stills": 5,
    "held_out_stills": 2,
    "steps": 4,
    "train_config": {
        "warmup_steps": 1,
        "held_out": ["00001", "00002"],
        "batch": 3,
        "seed": 7,
        "validation_pairs": 6,
    },
    "train_config_hash": "abc",
    "validation": [
        {
            "step": 0.0,
            "precision": 0.25,
            "recall": float("nan"),
        },
        {
            "step": 4.0,
            "precision": 0.5,
            "recall": 0.125,
        },
    ],
}


def test_the_figures_are_those_of_the_run():
    text = card_text(SUMMARY, [8.0, 1.0, 0.5, 0.25])
    assert "5 stills, 2 held out (operations 00001, 00002); 4 steps of 3 pairs, 1 of them" in text
    assert "Mean loss of the first 1 steps 8.000, of the last 0.250." in text
    assert "(6 pairs, mutual arg-max" in text
    assert "precision 0.250 and recall none at step 0, 0.500 and 0.125 at step 4." in text


def test_each_rule_is_told_with_its_precision_and_recall():
    rules = {
        "similarity > 0.8": {"precision": 0.5, "recall": 0.25, "f1": 0.3},
        "ratio < 0.5": {"precision": float("nan"), "recall": 0.0, "f1": 0.0},
    }
    text = rules_text(SUMMARY | {"rules": rules})
    assert text.endswith("stills (6): similarity > 0.8 0.500, 0.250; ratio < 0.5 none, 0.000.")


def test_the_rules_that_ship_keep_the_most_with_at_most_three_in_a_hundred_wrong():
    result = json.loads((DOCS / "results" / "vit.rules.json").read_text(encoding="utf-8"))
    for kind, ships in (("similarity >", CALIBRATED), ("ratio <", RATIO)):
        kept = {
            rule: found["recall"]
            for rule, found in result["rules"].items()
            if rule.startswith(kind) and found["precision"] >= 0.97
        }
        assert max(kept, key=lambda rule: kept[rule]) == f"{kind} {ships:g}"
    assert rules_text(result) in (DOCS / "models" / "vit.md").read_text(encoding="utf-8")


def test_the_plot_is_drawn_where_matplotlib_is_installed(tmp_path):
    pytest.importorskip("matplotlib")
    assert plot_losses([2.0, 1.0], SUMMARY["validation"], tmp_path / "loss.png", warmup=1)
    assert (tmp_path / "loss.png").stat().st_size > 1000
