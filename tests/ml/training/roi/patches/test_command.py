"""Training of the patch encoder on a tiny configuration."""

from __future__ import annotations

import csv
import dataclasses
import json
import multiprocessing
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file

from ml.cli import main
from ml.errors import BadInputError, CancelledError, WeightsError
from ml.networks.patch_cnn import PatchCnnConfig
from ml.roi.encoders.patch_cnn import load_patch_cnn
from ml.roi.stain.deconvolution import published_stains
from ml.training.common.run import TrainingRun
from ml.training.roi.patches.batches import Batch, TissueBatches
from ml.training.roi.patches.blocks import Blocks, make_block
from ml.training.roi.patches.command import PatchLearner, train_patches
from ml.training.roi.patches.config import PatchTrainConfig
from ml.training.roi.patches.views import ViewConfig
from tests.ml.training.losses import assert_first_losses
from tests.ml.training.roi.conftest import dense_tissue, write_block, write_table

TINY = PatchTrainConfig(
    atlas="index.csv",
    slides=(),
    steps=5,
    cooldown=2,
    batch=4,
    warmup=2,
    head_hidden=8,
    head_dim=4,
    checkpoint_every=2,
    view=ViewConfig(crop_px=32),
    network=PatchCnnConfig(widths=(4, 6, 8, 10)),
)

FIRST_LOSS = 3.826515


@pytest.fixture(scope="module")
def data(atlas):
    return atlas.parent


def differing(one, other):
    """Names of the tensors that differ between two files."""
    expected, result = load_file(one), load_file(other)
    assert expected.keys() == result.keys()
    return [key for key in expected if not np.array_equal(expected[key], result[key])]


@pytest.fixture(scope="module")
def with_kept_back(data, tmp_path_factory):
    """The same table with a patient that is not learned from."""
    folder = tmp_path_factory.mktemp("kept-back") / "atlas"
    shutil.copytree(data, folder)
    with (folder / "index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    pixels = dense_tissue(510, 510, seed=9, nuclei_per_mpx=900)
    rows += write_block(folder, pixels, "b9", patient="p9", use="dev-eval")
    write_table(folder / "index.csv", rows)
    return folder


@pytest.mark.slow
def test_a_run_watches_the_loss_of_patients_it_does_not_learn_from(data, with_kept_back, tmp_path):
    watching, alone = (TrainingRun(TINY, tmp_path / name) for name in ("watching", "alone"))
    assert train_patches(watching, data=with_kept_back)["patients"] == 3
    train_patches(alone, data=data)
    line = watching.history["held_out"]
    assert len(line) == TINY.steps and np.isfinite(line).all()
    assert "held_out" not in alone.history
    assert differing(watching.weights, alone.weights) == []


def test_missing_held_out_sources_are_named(data, tmp_path):
    config = dataclasses.replace(TINY, held_out=(("gone.svs", "p8", 0.5),))
    with pytest.raises(BadInputError, match=r"held_out: 'gone\.svs'"):
        train_patches(TrainingRun(config, tmp_path), data=data)


def test_an_interrupted_run_resumes_to_the_same_weights(data, tmp_path):
    def stop(done, total, phase):
        if phase.startswith("training") and done == 3:
            raise CancelledError("stop")

    train_patches(TrainingRun(TINY, tmp_path / "straight"), data=data)
    # The network runs in bfloat16, whose steps are half a percent.
    assert_first_losses(tmp_path / "straight", [FIRST_LOSS], rel=0.02)
    with pytest.raises(CancelledError):
        train_patches(TrainingRun(TINY, tmp_path / "broken", progress=stop), data=data)
    assert not (tmp_path / "broken" / "patch-cnn.safetensors").exists()
    train_patches(TrainingRun(TINY, tmp_path / "broken"), data=data)
    files = [tmp_path / name / "patch-cnn.safetensors" for name in ("straight", "broken")]
    assert differing(*files) == []


def test_a_run_gives_an_encoder_and_refuses_another_configuration(data, tmp_path):
    summary = train_patches(TrainingRun(TINY, tmp_path), data=data)
    encoder = load_patch_cnn(tmp_path / "patch-cnn.safetensors")
    patch = dense_tissue(224, 224)
    assert encoder.encode([patch], published_stains(patch)).shape == (1, 18)
    assert (summary["patients"], summary["blocks"]) == (3, 4)
    assert np.isfinite(summary["loss_last"])
    with pytest.raises(BadInputError, match="configuration"):
        train_patches(TrainingRun(dataclasses.replace(TINY, seed=1), tmp_path), data=data)


def test_the_command_refuses_an_unknown_key_in_one_line(data, tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"learning": 1}))
    words = ["train", "patches", "--data", str(data), "--out", str(tmp_path / "out")]
    assert main([*words, "--config", str(config)]) == 2
    assert capsys.readouterr().err.startswith("error: config.json: unknown key 'learning'")


def test_the_command_without_the_atlas_fails_in_one_line(tmp_path, capsys):
    words = ["train", "patches", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert capsys.readouterr().err == "error: index.csv: no such table of tiles\n"


def test_slides_count_as_separate_patients(data, tmp_path):
    Image.fromarray(dense_tissue(520, 520, seed=9)).save(data / "more.png")
    config = dataclasses.replace(TINY, slides=(("more.png", "other", 0.5),), steps=1)
    summary = train_patches(TrainingRun(config, tmp_path), data=data)
    assert (summary["patients"], summary["blocks"]) == (4, 5)


@pytest.fixture(scope="module")
def blocks():
    """Two patients, of four blocks and of one."""
    made = [make_block(dense_tissue(508, 508, seed=seed), 0.5) for seed in range(5)]
    colour = np.stack([np.eye(3, dtype=np.float32)] * 2)
    return Blocks((tuple(made[:4]), (made[4],)), colour, ("colon", ""))


def test_a_batch_holds_two_views_of_every_example_the_same_by_step(blocks):
    batches = TissueBatches(TINY, blocks)
    batch = batches(3)
    assert batch.views.shape == (8, 3, 32, 32) and torch.isfinite(batch.views).all()
    assert batch.organs.tolist() == [0 if patient == 0 else -1 for patient in batch.patients]
    assert torch.equal(batch.views, batches(3).views)
    assert not torch.equal(batch.views, batches(4).views)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_workers_draw_the_same_batches_as_one_process(blocks, workers):
    alone, shared = TissueBatches(TINY, blocks), TissueBatches(TINY, blocks, workers=workers)
    for batch, steps in ((4, (5, 6, 7, 2, 3)), (2, (4, 5))):
        alone.batch = shared.batch = batch
        for step in steps:
            for wanted, result in zip(alone(step), shared(step), strict=True):
                assert torch.equal(wanted, result)
    shared.close()
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_the_number_of_workers_does_not_change_the_weights(data, tmp_path):
    runs = [TrainingRun(TINY, tmp_path / name) for name in ("alone", "workers")]
    for workers, run in zip((0, 2), runs, strict=True):
        train_patches(run, data=data, draw_workers=workers)
    assert differing(*(run.weights for run in runs)) == []
    assert multiprocessing.active_children() == []


def test_organs_are_learned_from_only_if_they_are_given_weight(with_kept_back, tmp_path):
    with (with_kept_back / "index.csv").open(newline="") as file:
        rows = [{**row, "organ": "colon"} for row in csv.DictReader(file)]
    shutil.copytree(with_kept_back, tmp_path / "atlas")
    with (tmp_path / "atlas" / "index.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    losses = {}
    for weight in (0.0, 0.5):
        config = dataclasses.replace(TINY, organ_weight=weight, steps=1)
        run = TrainingRun(config, tmp_path / str(weight))
        train_patches(run, data=tmp_path / "atlas")
        losses[weight] = run.losses[0]
    assert losses[0.5] > losses[0.0]


def test_patients_are_sampled_by_a_power_of_their_block_count(blocks):
    for power, share in ((0.5, 2 / 3), (0.0, 1 / 2), (1.0, 4 / 5)):
        batches = TissueBatches(dataclasses.replace(TINY, patient_power=power), blocks)
        assert batches.share[0] == pytest.approx(share)


def with_views(views):
    """A batch of one patient without an organ."""
    count = len(views) // 2
    return Batch(views, torch.zeros(count, dtype=torch.int64), torch.full((count,), -1))


@pytest.fixture
def learner():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    batch = with_views(torch.randn(8, 3, 32, 32, generator=generator))
    return PatchLearner(TINY, lambda step: batch)


def test_the_rate_rises_is_constant_and_falls_to_zero(learner):
    config = dataclasses.replace(TINY, steps=100, warmup=10, cooldown=20, learning_rate=1.0)
    learner.config = config
    rates = [learner._learning_rate(step) for step in range(100)]
    assert rates[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert set(rates[10:81]) == {1.0}
    assert rates[80:] == pytest.approx(np.arange(20, 0, -1) / 20)
    learner.step(0, {})
    assert learner.optimiser.param_groups[0]["lr"] == rates[0]


def test_the_average_follows_the_weights(learner):
    """After one step it has a tenth of its start: (1 - 1/10) of the trained weights."""
    start = learner.average.stem[0].weight.clone()
    learner.step(0, {})
    trained = learner.scheme.encoder.stem[0].weight
    expected = 0.1 * start + 0.9 * trained
    assert not torch.equal(trained, start)
    assert torch.allclose(learner.average.stem[0].weight, expected, atol=1e-7)
    before = learner.average.stem[0].weight.clone()
    learner.step(10_000, {})
    expected = 0.998 * before + 0.002 * learner.scheme.encoder.stem[0].weight
    assert torch.allclose(learner.average.stem[0].weight, expected, atol=1e-6)
    assert not any(p.requires_grad for p in learner.average.parameters())
    norm = learner.scheme.encoder.stem[1]
    assert learner.average.stem[1].num_batches_tracked == norm.num_batches_tracked == 2


def test_the_batch_of_the_next_step_is_drawn_ahead():
    steps = []
    batch = with_views(torch.zeros(8, 3, 32, 32))
    learner = PatchLearner(TINY, lambda step: steps.append(step) or batch)
    for step in (2, 3):
        learner.step(step, {})
    learner._executor.shutdown()
    assert steps == [2, 3, 4]


def test_steps_make_the_loss_smaller(blocks):
    torch.manual_seed(0)
    config = dataclasses.replace(TINY, steps=40, warmup=1, cooldown=1, learning_rate=3e-3)
    batch = TissueBatches(config, blocks)(0)
    learner = PatchLearner(config, lambda step: batch)
    losses = [learner.step(step, {}) for step in range(20)]
    assert losses[-1] < 0.8 * losses[0]


def test_a_run_may_start_from_weights_of_the_same_sizes_only(data, tmp_path):
    first = TrainingRun(dataclasses.replace(TINY, steps=1), tmp_path / "first")
    train_patches(first, data=data)
    still = dataclasses.replace(TINY, steps=1, learning_rate=0.0)
    train_patches(TrainingRun(still, tmp_path / "second", start=first.weights), data=data)
    trained = load_patch_cnn(tmp_path / "second" / "patch-cnn.safetensors").network
    start = load_patch_cnn(first.weights).network
    for name, value in start.named_parameters():
        assert torch.equal(trained.get_parameter(name), value)
    wider = dataclasses.replace(still, network=PatchCnnConfig(widths=(8, 12, 16, 20)))
    with pytest.raises(WeightsError, match="PatchCnnConfig"):
        train_patches(TrainingRun(wider, tmp_path / "wider", start=first.weights), data=data)
