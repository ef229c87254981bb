"""Views made on the device are those of OpenCV, and as varied."""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
import pytest
import torch

from ml.networks.device import Compute
from ml.networks.patch_cnn import PatchCnnConfig
from ml.training.common.run import TrainingRun
from ml.training.roi.patches.blocks import Blocks, make_block
from ml.training.roi.patches.command import train_patches
from ml.training.roi.patches.config import PatchTrainConfig
from ml.training.roi.patches.device_views import DeviceTissueViews, _blurred
from ml.training.roi.patches.views import ViewConfig
from tests.ml.training.roi.conftest import dense_tissue

VIEW = ViewConfig(crop_px=32)
PLAIN = dataclasses.replace(VIEW, blur=0.0, jpeg=0.0, swap=0.0, mix=0.0, gain=0.0, gamma=0.0)
PLAIN = dataclasses.replace(PLAIN, grey=0.0, noise=0.0)


@pytest.fixture(scope="module")
def blocks():
    """Two patients: two blocks of different sizes, and one."""
    sides = ((508, 508), (300, 400), (508, 508))
    made = [make_block(dense_tissue(*s, seed=i), 0.5 + 0.3 * i) for i, s in enumerate(sides)]
    colour = np.stack([np.eye(3, dtype=np.float32), 0.5 * np.eye(3, dtype=np.float32)])
    return Blocks((tuple(made[:2]), (made[2],)), colour)


def views_of(blocks, fast, view=VIEW, batch=24):
    return DeviceTissueViews(PatchTrainConfig(batch=batch, view=view), blocks, fast)


def test_a_window_is_what_opencv_would_cut(blocks, fast):
    views = views_of(blocks, fast)
    windows = views.windows(np.array([0, 1] * 20), np.random.default_rng(0))
    found = views.sampled(windows).cpu().numpy()
    every = [block for own in blocks.of_patient for block in own]
    for i, (number, level) in enumerate(zip(windows.block, windows.level, strict=True)):
        expected = cv2.warpAffine(
            every[number].mips[level],
            windows.matrix[i],
            (32, 32),
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REFLECT,
        )
        # OpenCV's places are rounded to 1/32 px.
        assert np.abs(found[i].transpose(1, 2, 0) - expected).mean() < 2.0


def test_windows_are_of_their_patient_and_the_two_of_an_example_of_one_block(blocks, fast):
    views = views_of(blocks, fast)
    patients = np.array([0, 1, 0, 1])
    windows = views.windows(patients, np.random.default_rng(1))
    first, second = np.split(windows.block, 2)
    assert np.array_equal(first, second)
    assert np.array_equal(first == 2, patients == 1)


def test_a_blur_is_that_of_opencv(fast):
    image = dense_tissue(32, 32).astype(np.float32)
    tensor = torch.from_numpy(image).permute(2, 0, 1)[None].to(fast.device)
    found = _blurred(tensor, torch.tensor([0.9], device=fast.device))
    expected = cv2.GaussianBlur(image, (9, 9), 0.9)
    assert np.abs(found[0].permute(1, 2, 0).cpu().numpy() - expected).max() < 0.1


def test_a_batch_is_standardised_and_the_same_by_step(blocks, fast):
    views = views_of(blocks, fast, PLAIN)
    batch = views(3)
    assert batch.shape == (48, 3, 32, 32) and batch.device.type == fast.device.type
    assert batch.mean(dim=(2, 3)).abs().max() < 0.1
    assert torch.equal(batch, views(3)) and not torch.equal(batch, views(4))


@pytest.mark.parametrize(
    "strong",
    [
        {"swap": 1.0},
        {"mix": 0.3},
        {"gamma": 0.5},
        {"grey": 1.0},
        {"blur": 1.0},
        {"jpeg": 1.0},
        {"noise": 0.5},
    ],
    ids=str,
)
def test_each_augmentation_changes_the_views(blocks, fast, strong):
    plain = views_of(blocks, fast, PLAIN)
    other = views_of(blocks, fast, dataclasses.replace(PLAIN, **strong))
    assert (plain(0) - other(0)).abs().mean() > 0.01


def test_grey_views_have_one_plane_thrice(blocks, fast):
    batch = views_of(blocks, fast, dataclasses.replace(PLAIN, grey=1.0))(0)
    assert torch.allclose(batch[:, 0], batch[:, 2], atol=1e-3)


def test_a_training_takes_them_where_work_is_batched(tmp_path, atlas, fast):
    config = PatchTrainConfig(
        atlas="index.csv",
        slides=(),
        steps=3,
        cooldown=1,
        batch=4,
        warmup=1,
        head_hidden=8,
        head_dim=4,
        view=VIEW,
        network=PatchCnnConfig(widths=(4, 6, 8, 10)),
    )
    quick = train_patches(TrainingRun(config, tmp_path / "a", compute=fast), data=atlas.parent)
    other = Compute(torch.device("cpu"), batched=False)
    slow = train_patches(TrainingRun(config, tmp_path / "b", compute=other), data=atlas.parent)
    assert np.isfinite(quick["loss_last"]) and quick["loss_first"] != slow["loss_first"]
    asked = TrainingRun(config, tmp_path / "c", views="device", compute=other)
    wanted = train_patches(asked, data=atlas.parent)
    assert wanted["loss_first"] != slow["loss_first"]
    plain = TrainingRun(config, tmp_path / "d", views="opencv", compute=fast)
    kept = train_patches(plain, data=atlas.parent)
    assert kept["loss_first"] == pytest.approx(slow["loss_first"], rel=0.02)
