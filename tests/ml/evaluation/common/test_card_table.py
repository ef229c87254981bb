"""The table of a model card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ml.errors import BadInputError
from ml.evaluation.common.card_table import card_table, read_results

PAPERS = {
    "papers": {
        "sift": {"families": {"core": {"nn_precision": 0.9, "exact": 0.8, "nnt_score": 0.1}}},
        "orb": {"families": {}},
    }
}
POSES = {"partner_found": 0.7, "epipolar_px": 1.5, "auc_10deg": 0.25}
EPIPOLAR = {"scores": {"sift": {"all": POSES}}}


def test_results_of_several_protocols_share_a_table() -> None:
    head, _, *rows = card_table([PAPERS, EPIPOLAR]).splitlines()
    titles = "descriptor | NN precision | exact partner | NNT score | partner found"
    assert head == f"| {titles} | epipolar error, px | pose AUC 10 |"
    assert rows == [
        "| sift | 0.9000 | 0.8000 | 0.1000 | 0.7000 | 1.5000 | 0.2500 |",
        "| orb | - | - | - | - | - | - |",
    ]


def test_the_best_variant_of_the_hand_crafted_has_separate_rows() -> None:
    core = {"nn_precision": 0.96, "exact": 0.9, "nnt_score": 0.4}
    best = {"carried": {"sift (best form)": {"families": {"core": core}}}}
    rows = card_table([PAPERS, EPIPOLAR, best]).splitlines()[2:]
    assert rows[0].startswith("| sift | 0.9000 |")
    assert rows[-1] == "| sift (best form) | 0.9600 | 0.9000 | 0.4000 | - | - | - |"


def test_the_first_row_of_a_descriptor_is_used_and_new_rows_are_added() -> None:
    far = {"all": {**POSES, "epipolar_px": 9.0}}
    other = {"scores": {"sift": far, "triplet:build/paper/triplet.safetensors": far}}
    rows = card_table([EPIPOLAR, other]).splitlines()[2:]
    assert rows == [
        "| sift | 0.7000 | 1.5000 | 0.2500 |",
        "| triplet paper | 0.7000 | 9.0000 | 0.2500 |",
    ]
    assert card_table([EPIPOLAR, other], names=["triplet paper"]).splitlines()[2:] == rows[1:]


def test_earlier_results_are_read_and_other_files_raise_an_error(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    path.write_text(json.dumps(PAPERS))
    assert read_results([path]) == [PAPERS]
    path.write_text("[]")
    with pytest.raises(BadInputError, match=r"found\.json: .*list"):
        read_results([path])
    with pytest.raises(BadInputError, match=r"none\.json") as no:
        read_results([tmp_path / "none.json"])
    assert str(tmp_path) not in str(no.value)
