"""Training of ``cnn`` and ``graph`` on tiny configurations."""

from __future__ import annotations

import dataclasses
import json

import cv2
import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from ml.errors import BadInputError, CancelledError, WeightsError
from ml.keypoints.descriptors.learned import descriptor_from_file
from ml.networks.keypoint_cnn import KeypointCnnConfig
from ml.networks.keypoint_gnn import FIRST_SCALE, KeypointGnnConfig
from ml.training.common.run import TrainingRun
from ml.training.descriptors.cnn import train_contrast
from ml.training.descriptors.contrast import (
    ContrastLearner,
    neighbour_batches,
    random_rows,
    seen_rows,
)
from ml.training.descriptors.contrast_config import ContrastConfig
from ml.training.descriptors.graph import graph_config, joint_config
from ml.training.descriptors.views import StillsConfig, read_stills
from ml.types import no_progress
from tests.ml.training.losses import assert_first_losses

TINY = ContrastConfig(
    network=KeypointCnnConfig(widths=(2, 3, 4, 5, 6, 7), dim=6),
    graph=KeypointGnnConfig(dim=6, position_hidden=(4,), hidden=5),
    stills=StillsConfig(folder="", held_out=("b",), long_sides_px=(160,), keypoints=30),
    neighbours=5,
    projection_dim=4,
    steps=5,
    checkpoint_every=1,
)

GRAPH = dataclasses.replace(TINY, name="graph", has_graph=True)
BANK = dataclasses.replace(GRAPH, train_cnn=False, bank=2)
LOSSES = {
    TINY: [2.497368, 2.457486, 3.121583],
    GRAPH: [2.039771, 2.149969, 2.388880],
    BANK: [2.410170, 2.540274, 2.353863],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stills")
    for seed, name in enumerate(("a1.png", "a2.png", "b1.png")):
        noise = np.random.default_rng(seed).integers(60, 255, (120, 160), dtype=np.uint8)
        smooth = cv2.GaussianBlur(noise, (0, 0), 1.5)
        Image.fromarray(np.dstack([smooth] * 3)).save(folder / name)
    return folder


def test_a_run_watches_the_loss_of_held_out_stills_and_learns_the_same(data, tmp_path):
    stills, held_out = read_stills(data, TINY.stills, progress=no_progress)
    with_them, without = (TrainingRun(TINY, tmp_path / name) for name in ("with", "without"))
    train_contrast(with_them, stills, held_out)
    train_contrast(without, stills)
    line = with_them.history["held_out"]
    assert len(line) == TINY.steps and np.isfinite(line).all()
    assert "held_out" not in without.history
    first, other = (load_file(run.weights) for run in (with_them, without))
    assert all(np.array_equal(first[key], other[key]) for key in first)


def trained(config, data, *, out, **more):
    stills, held_out = read_stills(data, config.stills, progress=no_progress)
    return train_contrast(TrainingRun(config, out, **more), stills, held_out)


@pytest.mark.slow
@pytest.mark.parametrize("config", [TINY, GRAPH, BANK], ids=["cnn", "graph", "graph over a bank"])
def test_an_interrupted_run_resumes_to_the_same_weights(config, data, tmp_path):
    def stop(done, total, phase):
        if phase.startswith("training") and done == 3:
            raise CancelledError("stop")

    trained(config, data, out=tmp_path / "straight")
    assert_first_losses(tmp_path / "straight", LOSSES[config])
    with pytest.raises(CancelledError):
        trained(config, data, out=tmp_path / "broken", progress=stop)
    trained(config, data, out=tmp_path / "broken")
    name = f"{config.name}.safetensors"
    expected = load_file(tmp_path / "straight" / name)
    encoder = load_file(tmp_path / "broken" / name)
    assert [key for key in expected if not np.array_equal(expected[key], encoder[key])] == []
    assert any(key.startswith("graph.") for key in expected) == config.has_graph


@pytest.mark.slow
def test_the_graph_starts_from_the_cnn_and_can_freeze_it(data, tmp_path):
    trained(TINY, data, out=tmp_path / "cnn")
    start = tmp_path / "cnn" / "cnn.safetensors"
    frozen = dataclasses.replace(GRAPH, train_cnn=False)
    trained(frozen, data, out=tmp_path / "graph", start=start)
    before, after = load_file(start), load_file(tmp_path / "graph" / "graph.safetensors")
    assert [key for key in before if not np.array_equal(before[key], after[key])] == []
    made = descriptor_from_file(tmp_path / "graph" / "graph.safetensors")
    assert made.graph is not None
    assert float(made.graph.update[-1].weight.detach().abs().sum()) > 0

    still = dataclasses.replace(frozen, steps=1, learning_rate=0.0)
    trained(still, data, out=tmp_path / "on", start=tmp_path / "graph" / "graph.safetensors")
    on = load_file(tmp_path / "on" / "graph.safetensors")
    assert [key for key in after if not np.array_equal(on[key], after[key])] == []

    other = dataclasses.replace(GRAPH, network=dataclasses.replace(GRAPH.network, map_px=4))
    with pytest.raises(WeightsError, match="KeypointCnnConfig"):
        trained(other, data, out=tmp_path / "other", start=start)


def test_the_log_holds_configuration_losses_and_validation(data, tmp_path):
    summary = trained(TINY, data, out=tmp_path)
    log = json.loads((tmp_path / "log.json").read_text())
    assert log["train_config"]["temperature"] == 0.08
    assert len(log["history"]["loss"]) == TINY.steps
    assert np.isfinite(log["history"]["loss"]).all()
    assert log["validation"] == summary["validation"]
    assert set(log["validation"]) == {
        "rotation",
        "translation",
        "scale",
        "blur",
        "viewpoint",
        "all",
    }
    assert (tmp_path / "loss.png").stat().st_size > 1000


@pytest.mark.slow
def test_training_lowers_the_loss(data, tmp_path):
    config = dataclasses.replace(TINY, steps=40, learning_rate=5e-3)
    summary = trained(config, data, out=tmp_path)
    assert summary["loss_last"] < summary["loss_first"]


def test_a_checkpoint_of_another_configuration_raises_an_error(data, tmp_path):
    trained(TINY, data, out=tmp_path)
    with pytest.raises(BadInputError, match="configuration"):
        trained(dataclasses.replace(TINY, temperature=0.1), data, out=tmp_path)


def test_the_default_runs_equal_those_of_the_paper():
    config = ContrastConfig()
    assert (config.temperature, config.neighbours, config.learning_rate) == (0.08, 10, 5e-4)
    assert not config.has_graph
    assert graph_config().has_graph
    assert graph_config().learning_rate == config.learning_rate
    assert not graph_config().train_cnn
    assert joint_config().train_cnn and joint_config().graph.attention == "cosine"


def test_the_scale_of_cosine_attention_is_learned(data, tmp_path):
    graph = KeypointGnnConfig(dim=6, position_hidden=(4,), hidden=5, attention="cosine", nearest=4)
    trained(dataclasses.replace(GRAPH, graph=graph), data, out=tmp_path)
    made = descriptor_from_file(tmp_path / "graph.safetensors").graph
    assert made is not None and made.config == graph
    first, last = (float(v) for v in (np.log(FIRST_SCALE), made.log_scale.detach()))
    assert first != pytest.approx(last, abs=1e-6)


def test_a_mini_batch_contains_a_node_and_its_nearest_neighbours():
    xy = np.array([[0, 0], [1, 0], [2.5, 0], [9, 0]], np.float32)
    rng = np.random.default_rng(0)
    assert neighbour_batches(rng, xy, 2).tolist() == [[0, 1], [1, 0], [2, 1], [3, 2]]
    assert neighbour_batches(rng, xy, 10).shape == (4, 4)


def test_distant_neighbours_are_drawn_from_all_others_without_duplicates():
    xy = np.stack([np.arange(12.0) ** 1.5, np.zeros(12)], axis=1).astype(np.float32)
    drawn = set()
    for seed in range(60):
        rows = neighbour_batches(np.random.default_rng(seed), xy, 5, far=0.5)
        assert rows.shape == (12, 5)
        assert (rows[:, 0] == np.arange(12)).all()
        assert all(len(set(row)) == 5 for row in rows.tolist())
        assert rows[0, :3].tolist() == [0, 1, 2]  # two of the four neighbours are the nearest
        drawn |= set(rows[0, 3:].tolist())
    assert drawn == set(range(3, 12))
    assert neighbour_batches(np.random.default_rng(0), xy[:3], 10, far=1.0).shape == (3, 3)


def test_rows_outside_the_view_are_left_out():
    xy = np.array([[0, 0], [-1, 5], [19, 9], [19.5, 9], [3, 9.5], [4, 4]], np.float32)
    assert seen_rows(xy, (10, 20)).tolist() == [0, 2, 5]


def test_a_fraction_of_the_rows_is_selected():
    for seed in range(20):
        rows = random_rows(np.random.default_rng(seed), 40, min_share=0.5)
        assert 20 <= len(rows) <= 40
        assert (np.diff(rows) > 0).all()
    assert random_rows(np.random.default_rng(0), 3, min_share=0.01).shape == (2,)


@pytest.mark.parametrize("config", [TINY, GRAPH, BANK], ids=["cnn", "graph", "graph over a bank"])
def test_a_step_stays_on_the_device_of_its_network(config, data, elsewhere, up_to_its_loss):
    stills, _ = read_stills(data, config.stills, progress=no_progress)
    learner = ContrastLearner(config, stills, compute=elsewhere)
    with up_to_its_loss():
        learner.step(0, {})


@pytest.mark.parametrize("config", [TINY, GRAPH], ids=["cnn", "graph"])
def test_half_precision_learns_from_about_the_same_losses(config, data, learns_alike):
    stills, _ = read_stills(data, config.stills, progress=no_progress)
    learns_alike(lambda compute: ContrastLearner(config, stills, compute=compute))
