"""Cross-validation over operations, small."""

from __future__ import annotations

import json
import shutil

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from ml.errors import BadInputError
from ml.training.common.run import TrainingRun
from ml.training.descriptors.folds import DONE, cross_validate, dealt_operations
from tests.ml.training.descriptors.test_contrast import TINY


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operations")
    for seed, name in enumerate(("a-1.png", "a-2.png", "b-1.png", "c-1.png")):
        noise = np.random.default_rng(seed).integers(60, 255, (120, 160), dtype=np.uint8)
        smooth = cv2.GaussianBlur(noise, (0, 0), 1.5)
        Image.fromarray(np.dstack([smooth] * 3)).save(folder / name)
    return folder


def test_every_operation_is_held_out_once(data):
    dealt = dealt_operations(data, TINY.stills, folds=2, seed=0)
    assert sorted(sum(dealt, ())) == ["a", "b", "c"]
    assert sorted(map(len, dealt)) == [1, 2]
    with pytest.raises(BadInputError, match="expected 2 to 3 operations, got 4"):
        dealt_operations(data, TINY.stills, folds=4, seed=0)


def test_a_fold_learns_from_the_others_and_is_not_trained_twice(data, tmp_path):
    card = tmp_path / "card.md"
    card.write_text("<!-- figures: folds -->\n<!-- end figures -->\n")
    run = TrainingRun(TINY, tmp_path, card=card)
    found = cross_validate(run, data, folds=3)
    assert {fold["held_out"][0]: fold["stills"] for fold in found["folds"]} == {
        "a": 2,
        "b": 3,
        "c": 3,
    }
    lines = [fold["validation"]["all"]["precision"] for fold in found["folds"]]
    assert f"{np.mean(lines):.4f} ± {np.std(lines, ddof=1):.4f}" in card.read_text()

    kept = tmp_path / "fold-1" / DONE
    told = json.loads(kept.read_text())
    told["validation"]["all"]["precision"] = 0.125  # only who reads it again can know it
    kept.write_text(json.dumps(told))
    again = cross_validate(TrainingRun(TINY, tmp_path), data, folds=3)
    assert again["folds"][1]["validation"]["all"]["precision"] == 0.125
    assert again["folds"][0] == found["folds"][0]


def test_weights_that_may_have_seen_what_is_held_out_are_refused(data, tmp_path):
    file = tmp_path / "cnn.safetensors"
    file.write_bytes(b"")
    with pytest.raises(BadInputError, match="expected a folder of folds"):
        cross_validate(TrainingRun(TINY, tmp_path / "out", start=file), data, folds=2)


def test_a_fold_without_weights_to_start_from_is_named(data, tmp_path):
    (tmp_path / "cnn" / "fold-0").mkdir(parents=True)
    start = TrainingRun(TINY, tmp_path / "out", start=tmp_path / "cnn")
    with pytest.raises(BadInputError, match="fold-0: expected weights to start from, found none"):
        cross_validate(start, data, folds=2)


def test_every_process_goes_on_from_the_checkpoint_of_the_first(data, tmp_path):
    cross_validate(TrainingRun(TINY, tmp_path, hours=0.0), data, folds=2)
    beside = TrainingRun(TINY, tmp_path / ".rank-1", checkpoints=tmp_path)
    cross_validate(beside, data, folds=2)
    for name in ("fold-0", "fold-1"):
        assert not (tmp_path / ".rank-1" / name / "checkpoint.pt").exists()
        held = torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)
        assert len(held["history"]["loss"]) == TINY.steps


def test_a_fold_of_no_still_with_key_points_is_named(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "data")
    Image.fromarray(np.full((120, 160, 3), 90, np.uint8)).save(folder / "d-1.png")
    with pytest.raises(BadInputError, match="d: no still with enough key points to validate on"):
        cross_validate(TrainingRun(TINY, tmp_path / "out"), folder, folds=4)
