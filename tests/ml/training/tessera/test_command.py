"""Training of the default descriptor: tiny runs on synthetic stills."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from ml.errors import BadInputError, CancelledError, WeightsError
from ml.keypoints.descriptors.polar import PolarGrid
from ml.keypoints.descriptors.tessera import load_tessera, read_tessera
from ml.networks.tessera_descriptor import TesseraConfig
from ml.training.common.run import TrainingRun
from ml.training.tessera.command import train_tessera, training_files
from ml.training.tessera.config import TesseraTrainConfig
from ml.training.tessera.learner import TesseraLearner, draw_groups
from ml.training.tessera.pool import PoolConfig, draw_pool, load_stills
from ml.training.tessera.views import TesseraViewConfig
from tests.ml.training.losses import assert_first_losses

TINY = TesseraTrainConfig(
    source="stills",
    held_out=("kept",),
    blank=(0.0, 0.9, 0.2, 1.0),
    rounds=2,
    batch=32,
    group=16,
    warmup=1,
    bfloat16=False,
    pool=PoolConfig(long_side_px=(150, 180), stills=2, views=2, pairs=32),
    network=TesseraConfig(rings=8, angles=16, widths=(4, 8, 8, 8, 8, 16), dim=16, radius_px=24),
)
GRID = PolarGrid(rings=8, angles=16, radius_px=24.0, core_px=8.0)


def _still(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = cv2.GaussianBlur(rng.random((160, 200)).astype(np.float32), (0, 0), 2)
    noise = (noise - noise.min()) / (noise.max() - noise.min())
    return (60 + 180 * noise).astype(np.uint8)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "stills").mkdir()
    for name, seed in (("a-1", 0), ("a-2", 1), ("kept-1", 2)):
        cv2.imwrite(str(tmp_path / "stills" / f"{name}.png"), _still(seed))
    return tmp_path


def test_held_out_operations_are_excluded_from_training(data: Path) -> None:
    assert [path.stem for path in training_files(TINY, data)] == ["a-1", "a-2"]


def test_burnt_in_text_is_blackened(data: Path) -> None:
    still = load_stills(training_files(TINY, data), [(0.0, 0.9, 0.2, 1.0)])[0]
    assert still[144:, :40].max() == 0 and still[:144].min() > 0


def test_pairs_show_the_same_point_of_the_tissue() -> None:
    view = TesseraViewConfig(
        motion=0, defocus=0, light=0, spots=0, haze=0, noise=0, jpeg=0, rim=0,
        full_turn=0, small_turn_deg=0, zoom=1.0, stretch=1.0, perspective=0.0, shift=0.05,
    )  # fmt: skip
    pool = dataclasses.replace(TINY.pool, jitter_px=0.0, first_changed=0, second_changed=0)
    rng = np.random.default_rng(0)
    for part in draw_pool([_still(0), _still(1)], rng, pool=pool, view=view, grid=GRID):
        assert len(part.xy) > 8 and part.a.shape == (len(part.xy), 2, 8, 16)
        a, b = part.a.astype(np.float32)[:, 0], part.b.astype(np.float32)[:, 0]
        difference = np.abs(a - b).mean(axis=(1, 2))
        other = np.abs(a - np.roll(b, 1, axis=0)).mean(axis=(1, 2))
        assert np.median(difference) < 0.5 * np.median(other)


def test_pairs_of_a_local_part_are_neighbours_within_one_group() -> None:
    pool = dataclasses.replace(TINY.pool, local=1.0, pairs=16, random_points=0.5)
    view = TesseraViewConfig(full_turn=0, shift=0)
    parts = draw_pool([_still(0)], np.random.default_rng(0), pool=pool, view=view, grid=GRID)
    for part in parts:
        assert part.is_local and len(part.xy) == 16
        far = np.hypot(*(part.xy - part.xy[0]).T)
        assert (np.diff(far) >= 0).all() and far[0] == 0
    for number, rows in draw_groups(parts, np.random.default_rng(1), 8):
        assert (np.diff(rows) == 1).all() and number < len(parts)


@pytest.mark.slow
def test_training_lowers_the_loss_and_writes_weights_that_load(data: Path, tmp_path: Path) -> None:
    pool = dataclasses.replace(TINY.pool, local=0.0, support=(1.0, 1.0))
    easy = TesseraViewConfig(motion=0, defocus=0, light=0, spots=0, haze=0, rim=0)
    config = dataclasses.replace(TINY, rounds=6, passes=3, pool=pool, view=easy)
    summary = train_tessera(TrainingRun(config, tmp_path / "out"), data=data)
    assert summary["loss_by_round"][-1] < summary["loss_by_round"][0]
    descriptor = load_tessera(tmp_path / "out" / "tessera.safetensors")
    rows = descriptor.describe(_still(5), np.array([[80, 80]], np.float32), np.ones(1, np.float32))
    assert rows.shape == (1, 16) and np.isfinite(rows).all()


def test_an_interrupted_run_ends_with_the_same_weights(data: Path, tmp_path: Path) -> None:
    train_tessera(TrainingRun(TINY, tmp_path / "whole"), data=data)
    assert_first_losses(tmp_path / "whole", [8.649204, 7.967967])

    def stop(done: int, total: int, phase: str) -> None:
        raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        train_tessera(TrainingRun(TINY, tmp_path / "cut", progress=stop), data=data)
    train_tessera(TrainingRun(TINY, tmp_path / "cut"), data=data)
    weights, cut = (load_file(tmp_path / name / "tessera.safetensors") for name in ("whole", "cut"))
    assert all(np.array_equal(weights[key], cut[key]) for key in weights)


def test_a_checkpoint_of_another_configuration_raises_an_error(data: Path, tmp_path: Path) -> None:
    short = dataclasses.replace(TINY, rounds=1)
    train_tessera(TrainingRun(short, tmp_path / "out"), data=data)
    with pytest.raises(BadInputError, match="another configuration"):
        other = dataclasses.replace(short, seed=5)
        train_tessera(TrainingRun(other, tmp_path / "out"), data=data)


def test_no_stills_and_too_few_key_points_raise_an_error(data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no still"):
        train_tessera(TrainingRun(dataclasses.replace(TINY, source="x"), tmp_path / "a"), data=data)
    big = dataclasses.replace(TINY, group=4096, batch=4096)
    with pytest.raises(BadInputError, match="key points"):
        train_tessera(TrainingRun(big, tmp_path / "b"), data=data)


def test_boxes_of_three_numbers_raise_an_error(data: Path, tmp_path: Path) -> None:
    config = dataclasses.replace(TINY, blank=(0.0, 0.1, 0.2))
    with pytest.raises(BadInputError, match=r"4 .*3"):
        train_tessera(TrainingRun(config, tmp_path / "a"), data=data)


def test_a_step_stays_on_the_device_of_its_network(data: Path, elsewhere, up_to_its_loss) -> None:
    stills = load_stills(training_files(TINY, data), [])
    learner = TesseraLearner(TINY, stills, compute=elsewhere)
    with up_to_its_loss():
        learner.step(0, {})


def test_held_out_stills_are_recorded_and_change_no_weight(data: Path, tmp_path: Path) -> None:
    summary = train_tessera(TrainingRun(TINY, tmp_path / "with"), data=data)
    log = json.loads((tmp_path / "with" / "log.json").read_text())
    assert len(log["history"]["held_out"]) == 2 and min(log["history"]["held_out"]) > 0
    (data / "stills" / "kept-1.png").unlink()
    other = train_tessera(TrainingRun(TINY, tmp_path / "without"), data=data)
    assert other["loss_by_round"] == summary["loss_by_round"]
    files = [load_file(tmp_path / name / "tessera.safetensors") for name in ("with", "without")]
    assert all(np.array_equal(files[0][key], files[1][key]) for key in files[0])


def test_fine_tuning_starts_from_weights_and_refuses_those_of_other_sizes(
    data: Path, tmp_path: Path
) -> None:
    train_tessera(TrainingRun(TINY, tmp_path / "first"), data=data)
    start = tmp_path / "first" / "tessera.safetensors"
    still = dataclasses.replace(TINY, learning_rate=0.0, weight_decay=0.0)
    train_tessera(TrainingRun(still, tmp_path / "tuned", start=start), data=data)
    tuned = read_tessera(tmp_path / "tuned" / "tessera.safetensors")
    for name, value in read_tessera(start).named_parameters():
        assert torch.equal(value, dict(tuned.named_parameters())[name])
    other = dataclasses.replace(TINY, network=dataclasses.replace(TINY.network, dim=8))
    with pytest.raises(WeightsError, match="weights"):
        train_tessera(TrainingRun(other, tmp_path / "other", start=start), data=data)
