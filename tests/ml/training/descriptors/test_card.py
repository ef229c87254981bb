"""The figures of training in a card."""

from __future__ import annotations

import pytest

from ml.errors import BadInputError
from ml.training.descriptors.card import training_text, write_training
from ml.training.descriptors.validate import FAMILIES

SUMMARY = {
    "name": "triplet",
    "version": "1.0",
    "train_config_hash": "abc",
    "stills": 3,
    "held_out": 1,
    "validation": {},
    "train_config": {"epochs": 20, "triplets": 1500},
}
HISTORY = {
    "loss": [2.0] + [1.0] * 18 + [0.5],
    "easy": [0.5] * 19 + [0.9],
    "semi_hard": [0.3] * 19 + [0.1],
    "hard": [0.2] * 19 + [0.0],
}


def test_the_card_has_the_share_of_easy_triplets_of_the_first_and_last_epoch():
    text = training_text(SUMMARY, HISTORY, {})
    assert "20 epochs, loss 1.5 (first tenth) to 0.75 (last tenth)" in text
    assert "Share of easy triplets: 0.500 in the first epoch, 0.900 in the last." in text
    longer = SUMMARY | {"train_config": {"epochs": 250, "triplets": 1500}}
    stopped = training_text(longer, HISTORY, {})
    assert "; 20 of 250 epochs, 30,000 of 375,000 triplets, loss 1.5" in stopped
    held_out = training_text(SUMMARY, HISTORY | {"held_out_easy": [0.25, 0.75]}, {})
    assert "Share of easy triplets: 0.250 in the first epoch, 0.750 in the last." in held_out


def test_scores_are_in_one_table_with_the_baseline_below():
    row = {f: {"precision": 0.5, "nnt_precision": 0.75, "nnt_score": 0.25} for f in FAMILIES}
    row["all"] = row["blur"]
    text = training_text(SUMMARY, {"loss": [1.0]}, {"triplet": row, "sift": row})
    assert "1 steps" in text
    head, _, *rows = text.split("\n\n")[1].splitlines()
    assert head.startswith("| NN precision | rotation | translation | scale | blur | viewpoint |")
    assert head.endswith("| all | NNT precision, all | NNT score, all |")
    figures = " | ".join(["0.5000"] * 6 + ["0.7500", "0.2500"])
    assert rows == [f"| triplet | {figures} |", f"| sift | {figures} |"]


def test_figures_are_written_between_the_markers_and_missing_markers_raise_an_error(tmp_path):
    card = tmp_path / "card.md"
    card.write_text("before\n<!-- figures: training -->\nold\n<!-- end figures -->\nafter\n")
    written = write_training(card, SUMMARY, HISTORY, [])
    text = card.read_text()
    assert written in text
    assert text.startswith("before\n")
    assert text.endswith("<!-- end figures -->\nafter\n")
    assert "old" not in text
    card.write_text("nothing")
    with pytest.raises(BadInputError, match="markers"):
        write_training(card, SUMMARY, HISTORY, [])
