"""Training of the ROI encoder on a tiny configuration."""

from __future__ import annotations

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file
from scipy.spatial import cKDTree
from shapely.geometry import box

from ml.cli import main
from ml.errors import BadInputError, CancelledError, EmptyRegionError, WeightsError
from ml.networks.gcn import GcnConfig, RoiGcn
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig
from ml.networks.vertex_mean import vertex_mean_config
from ml.roi.config import EncoderConfig
from ml.roi.encoders.patch_cnn import save_patch_cnn
from ml.roi.weights import read_graph_encoder
from ml.training.common.run import TrainingRun
from ml.training.roi.encoder.command import train_roi
from ml.training.roi.encoder.config import RoiTrainConfig
from ml.training.roi.encoder.learner import RoiLearner
from ml.training.roi.encoder.pool import PatchPool, draw_region
from tests.ml.training.losses import assert_first_losses

NETWORK = GcnConfig(vertex_dim=16, hidden_dim=16, out_dim=8)

TINY = RoiTrainConfig(
    name="tiny",
    sources=("a.png", "more"),
    atlas="index.csv",
    pool_density=1.5,
    looks=2,
    radius_px=(100.0, 300.0),
    vertices=(3, 12),
    batch=6,
    steps=6,
    head_dim=8,
    checkpoint_every=2,
    calibration_regions=10,
    metric_ridge=0.1,
    encoder=EncoderConfig(network=NETWORK),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory, atlas):
    folder = tmp_path_factory.mktemp("data") / "all"
    shutil.copytree(atlas.parent, folder)
    (folder / "more").mkdir()
    rng = np.random.default_rng(0)
    for name in ("a.png", "more/b.png"):
        noise = rng.integers(90, 220, (75, 75, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((1500, 1500)).save(folder / name)
    return folder


@pytest.fixture(scope="module")
def straight(data, tmp_path_factory):
    """A run that nothing interrupted."""
    out = tmp_path_factory.mktemp("straight")
    return out, train_roi(TrainingRun(TINY, out), data=data)


@pytest.mark.slow
def test_a_run_gives_an_encoder_that_embeds(straight, data):
    out, summary = straight
    # Two makes of processors differ by two per cent here.
    assert_first_losses(out, [2.399867], rel=0.05)
    encoder = read_graph_encoder(out / "tiny.safetensors")
    image = np.asarray(Image.open(data / "a.png"))
    assert encoder.embed(image, box(0, 0, 900, 900)).shape == (NETWORK.embedding_dim,)
    assert summary["sources"] == ["a.png", "b.png"] and summary["patches"] > 20
    assert np.isfinite(summary["loss_last"])


@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_weights(straight, data, tmp_path):
    def stop(done, total, phase):
        if phase.startswith("training") and done == 5:
            raise CancelledError("stop")

    with pytest.raises(CancelledError):
        train_roi(TrainingRun(TINY, tmp_path, progress=stop), data=data)
    assert not (tmp_path / "tiny.safetensors").exists()
    resumed = train_roi(TrainingRun(TINY, tmp_path), data=data)
    expected = load_file(straight[0] / "tiny.safetensors")
    weights = load_file(tmp_path / "tiny.safetensors")
    assert expected.keys() == weights.keys()
    assert [key for key in expected if not np.array_equal(expected[key], weights[key])] == []
    assert resumed["loss_last"] == straight[1]["loss_last"]


def test_the_patch_network_is_stored_with_the_encoder_and_its_configuration(data, tmp_path):
    torch.manual_seed(0)
    sizes = PatchCnnConfig(widths=(4, 6, 8, 10))
    weights = tmp_path / "own.safetensors"
    save_patch_cnn(weights, name="own", version="1", network=PatchCnn(sizes))
    encoder = EncoderConfig(
        features="patch-cnn-2",
        stain="none",
        patch_cnn=dataclasses.replace(sizes, readout="moments"),
        network=dataclasses.replace(NETWORK, in_dim=20),
    )
    config = dataclasses.replace(
        TINY, sources=("a.png",), pool_density=0.8, encoder=encoder, steps=2
    )
    summary = train_roi(TrainingRun(config, tmp_path), data=data, patch_weights=weights)
    trained = read_graph_encoder(tmp_path / "tiny.safetensors")
    image = np.asarray(Image.open(data / "a.png"))
    assert trained.patches.dim == 20 and np.isfinite(summary["loss_last"])
    assert trained.embed(image).shape == (NETWORK.embedding_dim,)


@pytest.mark.slow
def test_without_graph_layers_only_the_metric_is_learned(straight, data, tmp_path):
    """The vertex part of what has a graph, from the atlas only."""
    network = vertex_mean_config(NETWORK.in_dim, NETWORK.vertex_dim)
    config = dataclasses.replace(TINY, encoder=EncoderConfig(network=network), sources=("none",))
    summary = train_roi(TrainingRun(config, tmp_path), data=data)
    assert (summary["steps"], summary["patches"], summary["loss_last"]) == (0, 0, None)
    encoder = read_graph_encoder(tmp_path / "tiny.safetensors")
    image = np.asarray(Image.open(data / "a.png"))
    with_graph = read_graph_encoder(straight[0] / "tiny.safetensors").embed(image)
    assert encoder.embed(image) == pytest.approx(with_graph[: NETWORK.vertex_dim], abs=1e-4)
    full = dataclasses.replace(config, encoder=EncoderConfig(network=vertex_mean_config(273)))
    with pytest.raises(BadInputError, match=r"vertex_dim: .*273"):
        train_roi(TrainingRun(full, tmp_path), data=data)


def test_without_graph_layers_a_run_starts_from_the_patch_encoder_of_another(data, tmp_path):
    """The same tissue gives the same metric; the patch network is the one of the start."""
    torch.manual_seed(0)
    sizes = PatchCnnConfig(widths=(4, 6, 8, 10))
    save_patch_cnn(tmp_path / "own", name="own", version="1", network=PatchCnn(sizes))
    encoder = EncoderConfig(
        features="patch-cnn-2",
        stain="none",
        patch_cnn=dataclasses.replace(sizes, readout="moments"),
        network=vertex_mean_config(20, 8),
    )
    config = dataclasses.replace(TINY, encoder=encoder, sources=(), atlas="index.csv")
    train_roi(TrainingRun(config, tmp_path / "first"), data=data, patch_weights=tmp_path / "own")
    start = tmp_path / "first" / "tiny.safetensors"
    tuned = dataclasses.replace(config, atlas="", slides=(("a.png", "p1", 1.0),))
    train_roi(TrainingRun(tuned, tmp_path / "second", start=start), data=data)
    before, after = load_file(start), load_file(tmp_path / "second" / "tiny.safetensors")
    moved = {key for key in before if not np.array_equal(before[key], after[key])}
    assert moved == {"feature_mean", "feature_scale", "metric"}
    other = dataclasses.replace(tuned, encoder=dataclasses.replace(encoder, keep_strength=0.5))
    with pytest.raises(WeightsError, match="EncoderConfig"):
        train_roi(TrainingRun(other, tmp_path / "third", start=start), data=data)
    with pytest.raises(BadInputError, match="--from"):
        train_roi(
            TrainingRun(tuned, tmp_path / "third", start=start),
            data=data,
            patch_weights=tmp_path / "own",
        )
    bare = dataclasses.replace(tuned, slides=())
    with pytest.raises(BadInputError, match="tissue"):
        train_roi(TrainingRun(bare, tmp_path / "third", start=start), data=data)


def test_a_network_for_other_features_raises_an_error(data, tmp_path):
    encoder = EncoderConfig(network=dataclasses.replace(NETWORK, in_dim=99))
    config = dataclasses.replace(TINY, encoder=encoder)
    with pytest.raises(BadInputError, match=r"in_dim: .*273.*'classical-1'"):
        train_roi(TrainingRun(config, tmp_path), data=data)


def test_features_of_the_atlas_are_cached(straight):
    assert len(list(straight[0].glob("atlas-*.npz"))) == 1


def test_a_checkpoint_of_another_configuration_raises_an_error(straight, data):
    other = dataclasses.replace(TINY, temperature=0.9)
    with pytest.raises(BadInputError, match="configuration"):
        train_roi(TrainingRun(other, straight[0]), data=data)


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(BadInputError, match=r"'a\.png'"):
        train_roi(TrainingRun(TINY, tmp_path / "out"), data=tmp_path)


def test_a_slide_without_tissue_cannot_be_trained_on(tmp_path):
    Image.fromarray(np.full((1200, 1200, 3), 255, np.uint8)).save(tmp_path / "white.png")
    config = dataclasses.replace(TINY, sources=("white.png",))
    with pytest.raises(EmptyRegionError, match=r"white: .*0 patches"):
        train_roi(TrainingRun(config, tmp_path / "out"), data=tmp_path)


def test_the_command_refuses_an_unknown_key_in_one_line(data, tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"learning": 1}))
    words = ["train", "roi", "--data", str(data), "--out", str(tmp_path / "out")]
    assert main([*words, "--config", str(config)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: config.json: unknown key 'learning'") and error.count("\n") == 1


def test_regions_are_connected_of_the_requested_size_and_deterministic():
    rng = np.random.default_rng(0)
    pool = PatchPool(rng.uniform(0, 3000, (500, 2)), np.zeros((1, 500, 1), np.float32))
    tree = cKDTree(pool.centre_px)
    sizes = []
    for seed in range(40):
        draws = [
            draw_region(
                pool, tree, np.random.default_rng(seed), radius_px=(100, 900), vertices=(4, 64)
            )
            for _ in range(2)
        ]
        assert np.array_equal(*draws)
        assert len(np.unique(draws[0])) == len(draws[0])
        sizes.append(len(draws[0]))
    assert min(sizes) >= 4 and max(sizes) == 64


@pytest.mark.slow
def test_fine_tuning_starts_from_the_weights_of_an_encoder(straight, data, tmp_path):
    start = straight[0] / "tiny.safetensors"
    still = dataclasses.replace(TINY, steps=1, learning_rate=0.0, weight_decay=0.0)
    out = tmp_path / "tuned"
    train_roi(TrainingRun(still, out, start=start), data=data)
    before, after = load_file(start), load_file(out / "tiny.safetensors")
    moved = [k for k in before if "context" not in k and not np.array_equal(before[k], after[k])]
    assert moved == []


@pytest.mark.slow
def test_training_on_a_device_uses_half_precision_and_ends_on_the_cpu(
    straight, data, tmp_path, fast
):
    train_roi(TrainingRun(TINY, tmp_path, compute=fast), data=data)
    ours, theirs = (
        json.loads((out / "log.json").read_text())["history"]["loss"]
        for out in (tmp_path, straight[0])
    )
    assert ours != theirs and ours == pytest.approx(theirs, rel=0.05)
    weights, expected = (load_file(out / "tiny.safetensors") for out in (tmp_path, straight[0]))
    assert weights.keys() == expected.keys()
    image = np.asarray(Image.open(data / "a.png"))
    encoder = read_graph_encoder(tmp_path / "tiny.safetensors")
    assert encoder.embed(image, box(0, 0, 900, 900)).shape == (NETWORK.embedding_dim,)


def test_the_batch_of_a_step_is_on_the_device_of_its_network(elsewhere, monkeypatch):
    rng = np.random.default_rng(0)
    xy = rng.uniform(0, 2_000, (80, 2))
    features = rng.normal(size=(2, 80, NETWORK.in_dim)).astype(np.float32)
    learner = RoiLearner(TINY, [PatchPool(xy, features)], [features], compute=elsewhere)
    given = []

    def context(network, vertices, edge_index, batch):
        given.extend([vertices, edge_index, batch, *learner.head.parameters()])
        raise CancelledError("seen")

    monkeypatch.setattr(RoiGcn, "context", context)
    with pytest.raises(CancelledError):
        learner.step(0, {})
    assert {tensor.device.type for tensor in given} == {"meta"}


@pytest.mark.slow
def test_held_out_regions_are_evaluated_without_effect_on_training(data, tmp_path):
    phases = []
    without = dataclasses.replace(TINY, sources=("a.png",))
    config = dataclasses.replace(without, held_out=("more",))
    run = TrainingRun(config, tmp_path / "a", progress=lambda *args: phases.append(args[2]))
    train_roi(run, data=data)
    train_roi(TrainingRun(without, tmp_path / "b"), data=data)
    log = json.loads((tmp_path / "a" / "log.json").read_text())
    assert len(log["history"]["held_out"]) == TINY.steps
    assert log["sources"] == ["a.png"] and "held out" in phases[-1]
    weights, expected = (load_file(tmp_path / part / "tiny.safetensors") for part in "ab")
    assert [key for key in expected if not np.array_equal(expected[key], weights[key])] == []


@pytest.mark.slow
def test_files_of_one_name_in_two_folders_have_separate_features(data, tmp_path):
    (data / "named").mkdir()
    shutil.copy(data / "more" / "b.png", data / "named" / "a.png")
    config = dataclasses.replace(TINY, sources=("a.png",), held_out=("named",), steps=1)
    train_roi(TrainingRun(config, tmp_path), data=data)
    pools = [np.load(file)["features"] for file in sorted(tmp_path.glob("pool-*-a-*.npz"))]
    assert len(pools) == 2
    assert pools[0].shape != pools[1].shape or not np.array_equal(*pools)


def test_sources_that_are_also_held_out_raise_an_error(data, tmp_path):
    config = dataclasses.replace(TINY, held_out=("more",))
    with pytest.raises(BadInputError, match=r"held_out: more/b\.png"):
        train_roi(TrainingRun(config, tmp_path), data=data)


@pytest.mark.slow
def test_a_step_that_does_not_fit_is_taken_with_half_the_regions(data, tmp_path, monkeypatch):
    real, sizes = RoiLearner._project, []

    def small(learner, pools, view):
        sizes.append(len(view))
        if len(view) > 3:
            raise torch.OutOfMemoryError
        return real(learner, pools, view)

    monkeypatch.setattr(RoiLearner, "_project", small)
    run = TrainingRun(dataclasses.replace(TINY, steps=2), tmp_path)
    train_roi(run, data=data)
    assert sizes == [6, 3, 3, 3, 3] and run.history["batch"] == [[0, 3]]


@pytest.mark.slow
def test_a_run_ended_by_its_hours_reports_its_steps(data, tmp_path):
    summary = train_roi(TrainingRun(TINY, tmp_path, hours=0.0), data=data)
    assert (summary["stopped_early"], summary["steps"]) == (True, 1)
