"""Training of ``triplet`` on tiny configurations."""

from __future__ import annotations

import dataclasses
import json

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file

from ml.cli import main
from ml.errors import BadInputError, CancelledError, WeightsError
from ml.keypoints.descriptors.learned import descriptor_from_file
from ml.networks.triplet_cnn import TripletCnnConfig
from ml.training.common.run import TrainingRun
from ml.training.descriptors import triplet_learner
from ml.training.descriptors.card import SHARES
from ml.training.descriptors.triplet import train_triplet
from ml.training.descriptors.triplet_config import TripletConfig
from ml.training.descriptors.triplet_learner import TripletLearner
from ml.training.descriptors.triplets import (
    PerspectiveConfig,
    draw_triplets,
    perspective_patches,
    random_negatives,
    still_batches,
)
from ml.training.descriptors.views import KeypointStill, StillsConfig, StillViewConfig, read_stills
from ml.types import no_progress
from tests.ml.training.descriptors.test_validate import points
from tests.ml.training.losses import assert_first_losses

TINY = TripletConfig(
    network=TripletCnnConfig(patch_px=32, channels=3, hidden=(8, 8, 8), dim=6),
    stills=StillsConfig(folder="", held_out=("b",), long_sides_px=(160,), keypoints=30),
    triplets=24,
    epochs=5,
    renew_every=2,
    batch=10,
    checkpoint_every=1,
)

STILL_POSITIVE = PerspectiveConfig(rotation_deg=0, scale=0, tilt=0, shift_px=0)
NO_LIGHT = StillViewConfig(photometric=0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stills")
    for seed, name in enumerate(("a1.png", "a2.png", "b1.png")):
        noise = np.random.default_rng(seed).integers(60, 255, (120, 160), dtype=np.uint8)
        smooth = cv2.GaussianBlur(noise, (0, 0), 1.5)
        Image.fromarray(np.dstack([smooth] * 3)).save(folder / name)
    return folder


@pytest.fixture(scope="module")
def stills(data) -> tuple[list[KeypointStill], list[KeypointStill]]:
    return read_stills(data, TINY.stills, progress=no_progress)


@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_weights(stills, tmp_path):
    def stop(done, total, phase):
        if done == 3:
            raise CancelledError("stop")

    train_triplet(TrainingRun(TINY, tmp_path / "straight"), *stills)
    assert_first_losses(tmp_path / "straight", [1.003078560, 1.001582166])
    with pytest.raises(CancelledError):
        train_triplet(TrainingRun(TINY, tmp_path / "broken", progress=stop), *stills)
    train_triplet(TrainingRun(TINY, tmp_path / "broken"), *stills)
    expected = load_file(tmp_path / "straight" / "triplet.safetensors")
    encoder = load_file(tmp_path / "broken" / "triplet.safetensors")
    assert [key for key in expected if not np.array_equal(expected[key], encoder[key])] == []
    logs = [json.loads((tmp_path / n / "log.json").read_text()) for n in ("straight", "broken")]
    assert logs[0]["history"] == logs[1]["history"]


def test_shares_are_logged_each_epoch_and_sum_to_one(stills, tmp_path):
    summary = train_triplet(TrainingRun(TINY, tmp_path), *stills)
    log = json.loads((tmp_path / "log.json").read_text())["history"]
    assert len(log["loss"]) == TINY.epochs
    for prefix in ("", "held_out_"):
        shares = np.array([log[prefix + n] for n in ("easy", "semi_hard", "hard")])
        assert shares.shape == (3, TINY.epochs)
        assert np.allclose(shares.sum(axis=0), 1, atol=1e-4)
    assert summary["shares"]["easy"] == [log["easy"][0], log["easy"][-1]]
    assert 0 <= summary["validation"]["all"]["precision"] <= 1
    assert (tmp_path / "loss.png").stat().st_size > 1000
    assert (tmp_path / "shares.png").stat().st_size > 1000


def test_the_number_of_embedded_held_out_triplets_is_limited(stills, monkeypatch):
    monkeypatch.setattr(triplet_learner, "_MAX_HELD_OUT", 7)
    learner, history = TripletLearner(TINY, *stills), {}
    seen = []
    learner.network.register_forward_hook(lambda net, given, made: seen.append(len(made)))
    learner.step(0, history)
    assert seen[-1] == 2 * 7 and max(seen[:-1]) == 2 * TINY.batch
    assert sum(history[f"held_out_{name}"][0] for name in SHARES) == pytest.approx(1)


def test_training_lowers_the_loss(stills, tmp_path):
    config = dataclasses.replace(TINY, epochs=30, renew_every=100, mined=False)
    train_triplet(TrainingRun(config, tmp_path), stills[0])
    log = json.loads((tmp_path / "log.json").read_text())["history"]
    assert np.mean(log["loss"][-5:]) < 0.7 * np.mean(log["loss"][:3])


def test_the_margin_switches_to_the_papers_after_the_easy_share_converges(stills):
    learner = TripletLearner(dataclasses.replace(TINY, settled=0.5), stills[0], ())
    assert learner._min_margin({}) == TINY.min_margin
    assert learner._min_margin({"mined_easy": [0.2, 0.49]}) == TINY.min_margin
    assert learner._min_margin({"mined_easy": [0.2, 0.5, 0.3]}) == 0


def test_a_checkpoint_of_another_configuration_raises_an_error(stills, tmp_path):
    train_triplet(TrainingRun(dataclasses.replace(TINY, epochs=1), tmp_path), *stills)
    with pytest.raises(BadInputError, match="configuration"):
        train_triplet(TrainingRun(dataclasses.replace(TINY, epochs=1, seed=4), tmp_path), *stills)


def test_one_command_tunes_to_a_sequence_without_labels(data, tmp_path):
    train_triplet(
        TrainingRun(TINY, tmp_path / "all"), *read_stills(data, TINY.stills, progress=no_progress)
    )
    config = json.loads(json.dumps(dataclasses.asdict(TINY)))
    (tmp_path / "config.json").write_text(json.dumps(config))
    start = tmp_path / "all" / "triplet.safetensors"
    arguments = ["--config", str(tmp_path / "config.json"), "--out", str(tmp_path / "one")]
    arguments += ["--sequence", str(data), "--from", str(start), "--steps", "2"]
    assert main(["train", "triplet", *arguments]) == 0
    before, after = load_file(start), load_file(tmp_path / "one" / "triplet.safetensors")
    assert before.keys() == after.keys()
    assert any(not np.array_equal(before[key], after[key]) for key in before)
    assert descriptor_from_file(tmp_path / "one" / "triplet.safetensors").name == "triplet"


@pytest.mark.slow
def test_a_schedule_that_ends_early_reports_its_length(data, tmp_path):
    page, figures = tmp_path / "page.md", tmp_path / "figures.json"
    page.write_text("<!-- figures: schedule -->\nNot run.\n<!-- end figures -->\n")
    (tmp_path / "config.json").write_text(json.dumps(dataclasses.asdict(TINY)))
    words = ["train", "triplet", "--data", data, "--config", tmp_path / "config.json"]
    words += ["--out", tmp_path / "run", "--card", page, "--section", "schedule"]
    words = [*map(str, words), "--figures", str(figures)]
    for hours, length in (["--hours", "0"], "1 of 5 epochs, 24 of 120 triplets"), ([], "5 epochs"):
        assert main([*words, *hours]) == 0
        table = json.loads(figures.read_text())["table"]
        assert f"; {length}, loss" in table
        assert f"<!-- figures: schedule -->\n{table}\n<!-- end" in page.read_text()


def test_starting_weights_of_other_sizes_raise_an_error(stills, tmp_path):
    train_triplet(TrainingRun(dataclasses.replace(TINY, epochs=0), tmp_path), *stills)
    other = dataclasses.replace(TINY, network=dataclasses.replace(TINY.network, dim=4))
    with pytest.raises(WeightsError, match="TripletCnnConfig"):
        start = tmp_path / "triplet.safetensors"
        train_triplet(TrainingRun(other, tmp_path / "other", start=start), *stills)


def test_without_data_or_sequence_the_command_fails(tmp_path, capsys):
    assert main(["train", "triplet", "--out", str(tmp_path)]) == 2
    assert "--data: expected the folder" in capsys.readouterr().err


def test_without_perspective_and_light_the_positive_is_the_anchor(stills):
    drawn = draw_triplets(
        np.random.default_rng(0),
        stills[0],
        count=20,
        patch_px=32,
        perspective=STILL_POSITIVE,
        light=NO_LIGHT,
    )
    assert drawn.anchors.shape == drawn.positives.shape == (20, 1, 32, 32)
    assert (drawn.anchors.int() - drawn.positives.int()).abs().max() <= 1


def test_a_positive_has_the_key_point_in_its_middle():
    window = torch.zeros(1, 1, 48, 48)
    window[:, :, 23:25, 23:25] = 1.0  # the centre lies between the four
    config = PerspectiveConfig(rotation_deg=40, scale=0.2, tilt=0.1, shift_px=0)
    for seed in range(10):
        patch = perspective_patches(
            np.random.default_rng(seed), window, patch_px=32, config=config
        )[0, 0]
        rows, columns = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
        middle = [float((patch * axis).sum() / patch.sum()) for axis in (rows, columns)]
        assert middle == pytest.approx([15.5, 15.5], abs=0.25)


def test_a_negative_is_drawn_from_all_other_triplets():
    seen = set()
    for seed in range(200):
        rows = random_negatives(np.random.default_rng(seed), 4)
        assert (rows % 4 != np.arange(4)).all()
        seen |= {(i, int(row)) for i, row in enumerate(rows)}
    assert len(seen) == 4 * 6


def test_batches_contain_every_row_once_grouped_by_still():
    still = np.array([2, 0, 0, 2, 0, 0, 2, 2, 1, 1])
    seen = set()
    for seed in range(20):
        batches = still_batches(np.random.default_rng(seed), still, 4)
        assert [len(batch) for batch in batches].count(4) == 2 and len(batches) == 3
        assert sorted(np.concatenate(batches)) == list(range(10))
        of_each = [sum(int(i in still[batch]) for batch in batches) for i in range(3)]
        assert max(of_each) <= 2  # a still is split between neighbouring batches only
        seen.add(tuple(np.concatenate(batches)))
    assert len(seen) > 15
    assert still_batches(np.random.default_rng(0), np.zeros(0, np.int64), 4) == []


@pytest.mark.parametrize("switch", ["by_still", "mined", "decay", "adam"])
def test_each_switch_changes_the_weights(stills, tmp_path, switch):
    drawn = []
    for value in (True, False):
        config = dataclasses.replace(TINY, epochs=2, **{switch: value})
        train_triplet(TrainingRun(config, tmp_path / str(value)), stills[0])
        weights = load_file(tmp_path / str(value) / "triplet.safetensors")
        drawn.append(weights["network.convolution.weight"])
    assert not np.array_equal(*drawn)


def test_too_few_key_points_raise_an_error():
    still = KeypointStill(
        "a", np.zeros((40, 40), np.uint8), np.zeros((40, 40), np.uint8), points(np.ones((1, 2)))
    )
    with pytest.raises(BadInputError, match=r"2 .*1"):
        draw_triplets(
            np.random.default_rng(0),
            [still],
            count=4,
            patch_px=32,
            perspective=STILL_POSITIVE,
            light=NO_LIGHT,
        )


@pytest.mark.parametrize("mined", [True, False])
def test_a_step_stays_on_the_device_of_its_network(mined, stills, elsewhere, up_to_its_loss):
    config = dataclasses.replace(TINY, mined=mined)
    learner = TripletLearner(config, stills[0], (), compute=elsewhere)
    with up_to_its_loss():
        learner.step(0, {})


def test_half_precision_learns_from_about_the_same_losses(stills, learns_alike):
    learns_alike(lambda compute: TripletLearner(TINY, stills[0], (), compute=compute))
