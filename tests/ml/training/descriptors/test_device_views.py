"""Views of stills made on the device are those of OpenCV, and as varied."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from ml.keypoints.descriptors.learned import as_plane, padded
from ml.networks.device import REFERENCE
from ml.training.common.run import TrainingRun
from ml.training.descriptors.cnn import train_contrast
from ml.training.descriptors.device_views import DeviceStills, Lights, padded_plane, relit
from ml.training.descriptors.triplet import train_triplet
from ml.training.descriptors.triplets import draw_triplets
from ml.training.descriptors.views import StillViewConfig, make_view, other_light, read_stills
from ml.types import no_progress
from tests.ml.training.descriptors.test_contrast import TINY as CONTRAST
from tests.ml.training.descriptors.test_contrast import data
from tests.ml.training.descriptors.test_triplet import TINY as TRIPLET

PLAIN = StillViewConfig(photometric=0.0)
LIT = StillViewConfig(photometric=1.0, noise_sd=0.0, blur_px=1)

__all__ = ["data"]


@pytest.fixture(scope="module")
def stills(data):
    return read_stills(data, CONTRAST.stills, progress=no_progress)


@pytest.mark.parametrize("config", [PLAIN, dataclasses.replace(PLAIN, combined=1.0)])
def test_a_view_is_that_of_opencv(stills, fast, config):
    still, views = stills[0][0], DeviceStills(fast)
    for seed in range(3):
        found, matrix = views.view(np.random.default_rng(seed), still, config)
        wanted = make_view(np.random.default_rng(seed), still, config)
        assert np.array_equal(matrix, wanted.H_view_from_still)
        apart = np.abs(found[0, 0].cpu().numpy() - wanted.equalised)
        # OpenCV's places are rounded to 1/32 px, which the equalised contrast makes twice as large
        assert np.median(apart) <= 1 and apart.mean() < 2.5
    assert found.device.type == fast.device.type


def test_light_is_that_of_opencv_where_nothing_is_random(fast):
    images = np.random.default_rng(0).integers(0, 256, (2, 20, 24), dtype=np.uint8)
    rng = np.random.default_rng(3)
    numbers = np.array([[rng.uniform(*LIT.gamma), rng.uniform(*LIT.gain)] for _ in range(1)] * 2)
    kernel = np.zeros((2, 3, 3), np.float32)
    kernel[:, 1, 1] = 1
    lights = Lights(np.array([True, False]), *numbers.T, np.zeros(2), kernel)
    tensor = torch.from_numpy(images[:, None].astype(np.float32)).to(fast.device)
    found = relit(tensor, lights, torch.Generator(fast.device)).cpu().numpy()[:, 0]
    wanted = other_light(np.random.default_rng(3), images[0], LIT)
    assert np.abs(found[0] - wanted).max() <= 1
    assert np.array_equal(found[1], images[1])


@pytest.mark.parametrize(
    "strong", [{"noise_sd": 9.0}, {"blur_px": 15}, {"gain": (0.5, 0.6)}], ids=str
)
def test_each_change_of_light_changes_images_and_is_drawn_for_its_share(fast, strong):
    quiet = {"noise_sd": 0.0, "blur_px": 1, "gain": (1.0, 1.0), "gamma": (1.0, 1.0)}
    config = dataclasses.replace(LIT, **(quiet | strong), photometric=0.6)
    image = torch.from_numpy(np.random.default_rng(1).integers(60, 200, (64, 1, 32, 32))).float()
    lights = Lights.drawn(np.random.default_rng(2), 64, config)
    noise = torch.Generator(fast.device).manual_seed(0)
    found = relit(image.to(fast.device), lights, noise).cpu()
    changed = (found != image).flatten(1).any(dim=1).numpy()
    assert 0.15 < changed.mean() < 0.85 and not changed[~lights.is_other].any()


def test_the_plane_of_the_network_is_the_same(stills, fast):
    image = stills[0][0].equalised
    found = padded_plane(DeviceStills(fast).plane(image), step=8)
    assert torch.equal(found.cpu(), as_plane(padded(image, step=8)))


def test_triplets_are_cut_and_tilted_as_on_the_processor(stills, fast):
    sets = []
    for device in (None, fast.device):
        options = {"count": 20, "patch_px": 32, "perspective": TRIPLET.perspective, "light": PLAIN}
        rng = np.random.default_rng(5)
        sets.append(draw_triplets(rng, stills[0][:1], **options, device=device))
    assert sets[1].positives.device.type == fast.device.type
    for name in ("anchors", "positives"):
        # their order is drawn after the light, which takes other numbers
        one, other = (getattr(found, name).cpu().float().mean(dim=(1, 2, 3)) for found in sets)
        assert torch.allclose(one.sort().values, other.sort().values, atol=0.1)


def test_trainings_take_them_where_work_is_batched(stills, fast, tmp_path):
    for train, config in (
        (train_contrast, dataclasses.replace(CONTRAST, steps=1)),
        (train_triplet, dataclasses.replace(TRIPLET, epochs=1)),
    ):
        runs = {
            "device": TrainingRun(config, tmp_path / config.name / "a", compute=fast),
            "opencv": TrainingRun(
                config, tmp_path / config.name / "b", views="opencv", compute=fast
            ),
            "plain": TrainingRun(config, tmp_path / config.name / "c"),
        }
        assert runs["opencv"].views_on is None and runs["plain"].views_on is None
        assert dataclasses.replace(runs["plain"], views="device").views_on is REFERENCE
        loss = {name: train(run, *stills)["loss_first"] for name, run in runs.items()}
        assert all(np.isfinite(list(loss.values())))
        assert loss["device"] != loss["plain"]
        assert loss["opencv"] == pytest.approx(loss["plain"], rel=0.02)
