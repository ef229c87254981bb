"""Training of the adapted vision transformer on tiny configurations."""

from __future__ import annotations

import dataclasses
import json

import cv2
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from ml.cli import main
from ml.errors import BadInputError, CancelledError, WeightsError
from ml.keypoints.descriptors.vit import descriptor_from_file
from ml.networks.vit_adapter import SmallVitConfig, VitConfig
from ml.training.common.run import TrainingRun
from ml.training.vit.command import depth_source, read_stills, train_vit
from ml.training.vit.config import VitTrainConfig, paper_config
from ml.training.vit.learner import VitLearner, to_batch
from ml.training.vit.score import score_pairs
from tests.ml.training.losses import assert_first_losses

TINY = VitTrainConfig(
    sources=("stills",),
    held_out=("c",),
    working_px=120,
    crop_px=32,
    batch=2,
    epochs=3,
    steps=2,
    stop_after=0,
    bootstrap_epochs=1,
    warmup_steps=3,
    validation_pairs=2,
    validate_every=3,
    checkpoint_every=2,
    network=VitConfig(
        small=SmallVitConfig(stem=(8, 12), width=16, depth=1, heads=2), heads=2, max_tokens=400
    ),
)

SHORT = dataclasses.replace(TINY, held_out=(), epochs=1, warmup_steps=0, bootstrap_epochs=0)


@pytest.fixture(scope="module")
def everything(data, tmp_path_factory):
    """Weights with nothing switched off."""
    folder = tmp_path_factory.mktemp("everything")
    train_vit(TrainingRun(SHORT, folder), data=data)
    return saved(folder)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "stills").mkdir()
    rng = np.random.default_rng(0)
    for name in ("a.png", "b.png", "c.png"):
        noise = cv2.GaussianBlur(rng.integers(0, 256, (68, 120, 3)).astype(np.uint8), (0, 0), 1.5)
        noise = cv2.normalize(noise, None, 40, 250, cv2.NORM_MINMAX)
        cv2.imwrite(str(folder / "stills" / name), noise)
    return folder


def saved(path):
    return {key: value.numpy() for key, value in load_file(path / "vit.safetensors").items()}


def test_an_interrupted_run_resumes_to_the_same_weights(data, tmp_path):
    def stop(done, total, phase):
        if phase.startswith("training") and done == 5:
            raise CancelledError("stop")

    straight = train_vit(TrainingRun(TINY, tmp_path / "straight"), data=data)
    assert_first_losses(tmp_path / "straight", [4.238553, 4.302010, 4.251529])
    with pytest.raises(CancelledError):
        train_vit(TrainingRun(TINY, tmp_path / "broken", progress=stop), data=data)
    resumed = train_vit(TrainingRun(TINY, tmp_path / "broken"), data=data)
    expected, result = saved(tmp_path / "straight"), saved(tmp_path / "broken")
    assert [key for key in expected if not np.array_equal(expected[key], result[key])] == []
    assert str(straight["validation"]) == str(resumed["validation"])  # NaN equals NaN so


def test_a_run_gives_a_descriptor_a_log_and_refuses_another_configuration(data, tmp_path):
    summary = train_vit(TrainingRun(TINY, tmp_path), data=data)
    assert descriptor_from_file(tmp_path / "vit.safetensors").dim == 16
    log = json.loads((tmp_path / "log.json").read_text())
    assert len(log["history"]["loss"]) == TINY.total_steps == summary["steps"] == 6
    assert [row["step"] for row in log["validation"]] == [0, 3, 6]
    assert len(log["history"]["held_out_precision"]) == len(log["history"]["loss"])
    assert (summary["stills"], summary["held_out_stills"]) == (2, 1)
    with pytest.raises(BadInputError, match="configuration"):
        train_vit(TrainingRun(dataclasses.replace(TINY, seed=1), tmp_path), data=data)


@pytest.mark.slow
def test_training_lowers_the_loss(data, tmp_path):
    config = dataclasses.replace(
        TINY, steps=20, epochs=2, warmup_steps=40, rates=(3e-3, 2e-3), held_out=()
    )
    run = TrainingRun(config, tmp_path)
    train_vit(run, data=data)
    assert np.mean(run.losses[-10:]) < 0.85 * np.mean(run.losses[:5])


@pytest.mark.parametrize(
    "change",
    [
        {"hard_negatives": False},
        {"photometric": False},
        {"novel_view": False},
        {"cycle_px": 0.0},
        {"sampled_positive": False, "near_patches": 0.0},
        {"train_backbone": False},
        {"decay": False},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_switch_changes_the_weights(data, everything, tmp_path, change):
    train_vit(TrainingRun(dataclasses.replace(SHORT, **change), tmp_path), data=data)
    first, other = everything, saved(tmp_path)
    assert any(not np.array_equal(first[key], other[key]) for key in first)


def test_a_frozen_backbone_is_unchanged(data, tmp_path):
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_ratio": 2}
    Dinov2Model(Dinov2Config(image_size=32, patch_size=8, **sizes)).save_pretrained(tmp_path / "b")
    network = VitConfig(backbone=str(tmp_path / "b"), heads=2)
    config = dataclasses.replace(TINY, network=network, train_backbone=False, held_out=())
    run = TrainingRun(config, tmp_path / "out")
    with run.learning():
        learner = VitLearner(config, *_stills(config, data))
        before = {k: v.clone() for k, v in learner.network.state_dict().items()}
        run.train(learner, steps=config.last_step, checkpoint_every=100)
    after = learner.network.state_dict()
    changed = {k.split(".")[0] for k in before if not torch.equal(before[k], after[k])}
    assert changed == {"adapter"}


def _stills(config, data):
    from ml.training.common.sources import source_files
    from ml.training.vit.command import read_stills

    return read_stills(config, source_files(config.sources, data))


def test_learning_rates_without_decay_follow_the_paper(data):
    config = dataclasses.replace(
        TINY, bootstrap_epochs=3, epochs=100, rates=(1e-4, 5e-5), decay=False, held_out=()
    )
    learner = VitLearner(config, *_stills(config, data))
    rates = [learner._learning_rate(step) for step in (0, 5, 6, 199)]
    assert rates == [1e-4, 1e-4, 5e-5, 5e-5]


def test_the_settings_of_the_paper_take_one_step_on_dinov2(data, tmp_path):
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_ratio": 2}
    Dinov2Model(Dinov2Config(image_size=28, patch_size=14, **sizes)).save_pretrained(tmp_path / "b")
    paper = paper_config(str(tmp_path / "b"))
    assert (paper.margin, paper.bootstrap_epochs, paper.epochs) == (1.0, 3, 100)
    assert paper.rates == (1e-4, 5e-5) and paper.total_steps == paper.last_step
    values = {
        "sources": ("stills",),
        "working_px": 240,
        "batch": 1,
        "held_out": (),
        "stop_after": 1,
    }
    summary = train_vit(
        TrainingRun(dataclasses.replace(paper, **values), tmp_path / "out"), data=data
    )
    assert np.isfinite(summary["loss_last"]) and summary["steps"] == 1
    assert descriptor_from_file(tmp_path / "out" / "vit.safetensors").network.patch_px == 14


def test_settings_that_cannot_be_trained_raise_an_error(data, tmp_path):
    odd = dataclasses.replace(TINY, crop_px=33)
    with pytest.raises(BadInputError, match=r"crop_px: .*4 px"):
        train_vit(TrainingRun(odd, tmp_path), data=data)
    nothing = dataclasses.replace(
        TINY, train_backbone=False, network=dataclasses.replace(TINY.network, layers=0)
    )
    with pytest.raises(BadInputError, match="train"):
        train_vit(TrainingRun(nothing, tmp_path), data=data)
    with pytest.raises(BadInputError, match="none"):
        train_vit(TrainingRun(dataclasses.replace(TINY, held_out=("",)), tmp_path), data=data)
    with pytest.raises(BadInputError, match="got both"):
        depth_source(TINY, model="x", folder=tmp_path)


def test_given_depth_is_used(data, tmp_path):
    depths = tmp_path / "depths"
    depths.mkdir()
    for stem in ("a", "b"):
        np.save(depths / f"{stem}.npy", np.linspace(1, 2, 68 * 120).reshape(68, 120))
    source = depth_source(TINY, model=None, folder=depths)
    with pytest.raises(BadInputError, match=r"c\.npy: expected"):
        train_vit(TrainingRun(TINY, tmp_path / "a"), data=data, depth_of=source)
    np.save(depths / "c.npy", np.ones((68, 120)))
    summary = train_vit(TrainingRun(TINY, tmp_path / "b"), data=data, depth_of=source)
    assert np.isfinite(summary["loss_last"])


def test_the_command_trains_and_writes_the_card(data, tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(dataclasses.asdict(TINY)))
    card = tmp_path / "vit.md"
    card.write_text("# vit\n<!-- figures: training -->\nold\n<!-- end figures -->\nend\n")
    words = ["train", "vit", "--data", str(data), "--out", str(tmp_path / "out")]
    assert main([*words, "--config", str(config), "--card", str(card)]) == 0
    text = card.read_text()
    assert "\nold\n" not in text and text.endswith("<!-- end figures -->\nend\n")
    assert "2 stills, 1 held out" in text and "at step 0" in text and "at step 6." in text
    config.write_text(json.dumps({"learning": 1}))
    assert main([*words, "--config", str(config)]) == 2
    assert capsys.readouterr().err.startswith("error: config.json: unknown key 'learning'")


def test_a_card_without_markers_raises_an_error(data, tmp_path):
    card = tmp_path / "vit.md"
    card.write_text("# vit\n")
    with pytest.raises(BadInputError, match="markers"):
        train_vit(TrainingRun(TINY, tmp_path / "a", card=card), data=data)


class Exact(torch.nn.Module):
    """Stub of the network, whose descriptors are the mean colours of the patches."""

    patch_px = 4

    def forward(self, pixels):
        means = torch.nn.functional.avg_pool2d(pixels, 4) - 0.5
        return torch.nn.functional.normalize(means, dim=1)


def test_a_pair_without_motion_scores_one(data):
    from ml.training.vit.pairs import draw_pair

    stills, _ = _stills(TINY, data)
    pair = draw_pair(np.random.default_rng(0), stills[0], crop_px=32)
    score = score_pairs(Exact().eval(), [pair])
    assert score["precision"] == 1 and score["recall"] == 1


def test_precision_without_pairs_is_undefined():
    assert np.isnan(score_pairs(Exact().eval(), [])["precision"])


def test_images_become_a_batch_in_zero_to_one():
    batch = to_batch([np.full((4, 6, 3), 255, np.uint8), np.zeros((4, 6, 3), np.uint8)])
    assert batch.shape == (2, 3, 4, 6) and batch[0].min() == 1 and batch[1].max() == 0


@pytest.mark.parametrize("config", [TINY, SHORT], ids=["contrast", "triplets"])
def test_a_step_stays_on_the_device_of_its_network(config, data, elsewhere, up_to_its_loss):
    config = dataclasses.replace(config, held_out=())
    files = sorted((data / "stills").iterdir())
    stills, _ = read_stills(config, files)
    learner = VitLearner(config, stills, (), compute=elsewhere)
    with up_to_its_loss():
        learner.step(1, {"loss": [1.0]})


def test_fine_tuning_starts_from_weights_and_refuses_those_of_other_sizes(
    data, everything, tmp_path
):
    train_vit(TrainingRun(SHORT, tmp_path / "first"), data=data)
    start = next((tmp_path / "first").glob("*.safetensors"))
    network = VitLearner(SHORT, [], [], start=start).network
    for key, value in load_file(start).items():
        assert torch.equal(network.state_dict()[key], value.float())
    other = dataclasses.replace(SHORT, network=dataclasses.replace(SHORT.network, heads=4))
    with pytest.raises(WeightsError, match="weights"):
        VitLearner(other, [], [], start=start)


def test_half_precision_learns_from_about_the_same_losses(data, learns_alike):
    config = dataclasses.replace(TINY, held_out=())
    stills, _ = read_stills(config, sorted((data / "stills").iterdir()))
    learns_alike(lambda compute: VitLearner(config, stills, (), compute=compute), number=1)


def test_held_out_pairs_are_scored_once_where_the_first_step_does_not_fit(
    data, tmp_path, monkeypatch
):
    real, sizes = VitLearner._maps, []

    def small(learner, pixels):
        sizes.append(len(pixels))
        if len(pixels) > 4:
            raise torch.OutOfMemoryError
        return real(learner, pixels)

    monkeypatch.setattr(VitLearner, "_maps", small)
    run = TrainingRun(dataclasses.replace(TINY, batch=4, epochs=1), tmp_path)
    train_vit(run, data=data)
    assert sizes == [8, 4, 4] and run.history["batch"] == [[0, 2]]
    assert [row["step"] for row in run.history["validation"]] == [0, 2]
