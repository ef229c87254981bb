"""Scenes of drawn text, and a short training."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from ml.cli import main
from ml.errors import BadInputError
from ml.imaging.revealing.network import LetterNetwork
from ml.training.letters.command import LetterTrainConfig, learn, letter_loss
from ml.training.letters.fonts import drawn
from ml.training.letters.grounds import learned_grounds, without_text
from ml.training.letters.scenes import UNSURE, SceneConfig, scene
from ml.types import no_progress
from tests.ml.imaging.revealing.support import tissue

GROUNDS = [tissue()]


def test_a_scene_comes_again_and_marks_its_letters() -> None:
    config = SceneConfig(text_share=1.0, turned_share=0.0)
    made = [scene(GROUNDS, config, rng=np.random.default_rng(4), use="learn") for _ in range(2)]
    (image, target), (again, _) = made
    assert (image == again).all()
    assert (image.shape, target.shape) == ((112, 112, 3), (28, 28))
    assert set(np.unique(target)) <= {0, 1, UNSURE}
    without = scene(GROUNDS, SceneConfig(text_share=0.0), rng=np.random.default_rng(4), use="learn")
    assert not without[1].any()


@pytest.mark.parametrize("use", ["learn", "measure"])
@pytest.mark.parametrize("height", [7, 20, 60])
def test_capitals_have_the_height_asked_for(use: str, height: int) -> None:
    rng = np.random.default_rng(0)
    heights = [drawn("HEH", height, rng=rng, use=use).shape[0] for _ in range(20)]  # type: ignore[arg-type]
    assert np.median(heights) == pytest.approx(height, rel=0.4, abs=2)


def test_loss_leaves_out_what_is_unsure_and_counts_the_hardest_again() -> None:
    targets = torch.tensor([[[1, 0, 0, UNSURE]]], dtype=torch.uint8)
    logits = torch.tensor([[[0.0, 0.0, -20.0, 20.0]]])
    loss = letter_loss(logits, targets, hardest_share=0.5)
    assert float(loss) == pytest.approx(np.log(2) * (1 + 0.5 + 1), rel=1e-4)


def test_training_lowers_the_loss_and_is_the_same_again() -> None:
    config = LetterTrainConfig(channels=(4, 8, 8, 8, 8), steps=40, batch=4)
    network, losses = learn(GROUNDS, config, no_progress)
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    _, again = learn(GROUNDS, config, no_progress)
    assert losses == again
    assert LetterNetwork.of(network.arrays()).logits(GROUNDS[0]).shape == (100, 160)


def test_the_command_writes_weights(tmp_path: Path) -> None:
    stills = tmp_path / "data/endoscopy/laparoscopy-stills"
    stills.mkdir(parents=True)
    cv2.imwrite(str(stills / "00001-1-frame-1.jpg"), tissue())
    out = tmp_path / "letters.npz"
    assert (
        main(["train", "letters", str(tmp_path / "data"), "--steps", "1", "--out", str(out)]) == 0
    )
    with np.load(out) as stored:
        LetterNetwork.of(stored)


def test_without_images_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no development images"):
        learned_grounds(tmp_path, seed=0)


def test_where_a_recorder_wrote_is_black() -> None:
    cleaned = without_text(np.full((720, 1280, 3), 200, np.uint8))
    assert not cleaned[-10:, :300].any()
    assert cleaned[:300].min() == 200
