"""Views and polar patches made on the device are those of OpenCV, and as varied."""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
import pytest
import torch

from ml.keypoints.descriptors.polar import polar_patches, visible_area
from ml.networks.device import REFERENCE
from ml.training.common.device.jpeg import grey_compressed
from ml.training.common.run import TrainingRun
from ml.training.tessera.command import train_tessera
from ml.training.tessera.device_views import DeviceStillViews, visible_area_of
from ml.training.tessera.pool import draw_pool
from ml.training.tessera.views import TesseraViewConfig, degraded, random_homography, warped
from tests.ml.training.tessera.test_command import GRID, TINY, _still, data

__all__ = ["data"]
CHANCES = ("motion", "defocus", "light", "spots", "haze", "rim", "noise", "jpeg")
NOTHING = dataclasses.replace(TesseraViewConfig(), **dict.fromkeys(CHANCES, 0.0))


def scope(seed=0, size=(160, 200)):
    """A still with a dark surround, and a dark spot inside that is no surround."""
    disc = np.zeros(size, np.uint8)
    cv2.circle(disc, (95, 80), 70, 1, -1)
    cv2.circle(disc, (80, 70), 9, 0, -1)
    return _still(seed) * disc


def whole(tensor):
    return tensor[0, 0].cpu().numpy()


@pytest.mark.parametrize("black", [0.0, 1.0])
def test_a_view_is_that_of_opencv(fast, black):
    config = dataclasses.replace(NOTHING, black_border=black)
    views = DeviceStillViews(fast, config)
    matrix = random_homography(np.random.default_rng(1), width=200, height=160, config=config)
    found = views.warped(views.image(_still(0)), matrix, np.random.default_rng(0))
    wanted = warped(_still(0), matrix, np.random.default_rng(0), config)
    assert found.device.type == fast.device.type
    assert np.abs(whole(found) - wanted).mean() < 0.7


def test_what_is_not_random_of_a_degraded_view_is_the_same(fast):
    """Exposure alone is left: its numbers are drawn after the one that seeds the noise."""
    views = DeviceStillViews(fast, NOTHING)
    found = views.degraded(views.image(scope()), np.random.default_rng(4))
    rng = np.random.default_rng(4)
    rng.integers(1 << 62)
    assert np.abs(whole(found) - degraded(scope(), rng, NOTHING)).max() <= 1


@pytest.mark.parametrize("name", CHANCES)
def test_each_degradation_changes_the_view_and_leaves_an_image(fast, name):
    views = [DeviceStillViews(fast, dataclasses.replace(NOTHING, **{name: p})) for p in (0.0, 1.0)]
    found = [whole(one.degraded(one.image(_still(0)), np.random.default_rng(2))) for one in views]
    assert np.abs(found[0] - found[1]).mean() > 0.2
    assert found[1].min() >= 0 and found[1].max() <= 255
    assert np.array_equal(found[1], np.rint(found[1]))


def test_a_grey_jpeg_is_that_of_the_library(fast):
    image = _still(3)[:61, :83]
    coded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 50])[1]
    wanted = cv2.imdecode(coded, cv2.IMREAD_GRAYSCALE)
    tensor = torch.from_numpy(image.astype(np.float32))[None, None].to(fast.device)
    found = whole(grey_compressed(tensor, torch.tensor([50], device=fast.device)))
    assert np.abs(found - wanted).mean() < 0.5 < np.abs(wanted - image.astype(float)).mean()


def test_the_surround_is_flooded_and_dark_spots_inside_are_not(fast):
    image = scope()
    tensor = torch.from_numpy(image.astype(np.float32))[None, None].to(fast.device)
    assert np.array_equal(whole(visible_area_of(tensor)), visible_area(image))
    plain = torch.full((1, 1, 64, 65), 90.0, device=fast.device)
    assert bool((visible_area_of(plain) == 1).all())


def test_polar_patches_are_those_of_the_descriptor(fast):
    image, rng = scope(), np.random.default_rng(5)
    xy = rng.uniform((0, 0), (199, 159), (60, 2)).astype(np.float32)
    zoom = np.exp(rng.uniform(-0.4, 0.8, 60)).astype(np.float32)
    wanted = polar_patches(image, xy, grid=GRID, zoom=zoom)
    views = DeviceStillViews(fast, NOTHING)
    found = views.patches(views.image(image), xy, GRID, zoom).float().cpu().numpy()
    apart = np.abs(found - wanted)
    # OpenCV rounds places to 1/32 px, which counts at the edge of the surround
    assert np.median(apart) < 0.01 and np.quantile(apart, 0.99) < 0.12
    assert views.patches(views.image(image), xy[:0], GRID, zoom[:0]).shape == (0, 2, 8, 16)


def test_a_pool_is_drawn_on_the_device_and_described_there(fast):
    stills = [_still(0), _still(1)]
    rng, options = np.random.default_rng(0), {"pool": TINY.pool, "view": TINY.view, "grid": GRID}
    parts = draw_pool(stills, rng, **options, compute=fast)
    assert len(parts) == TINY.pool.views * TINY.pool.stills
    for part in parts:
        assert part.a.shape == part.b.shape == (len(part.xy), 2, 8, 16)
        assert part.a.device.type == fast.device.type and bool(part.a.isfinite().all())


def test_a_training_takes_them_where_work_is_batched(data, tmp_path, fast):
    config = dataclasses.replace(TINY, rounds=1)
    runs = {
        "device": TrainingRun(config, tmp_path / "a", compute=fast),
        "opencv": TrainingRun(config, tmp_path / "b", views="opencv", compute=fast),
        "plain": TrainingRun(config, tmp_path / "c"),
    }
    assert runs["device"].views_on is fast and runs["plain"].compute is REFERENCE
    loss = {name: train_tessera(run, data=data)["loss_first"] for name, run in runs.items()}
    assert np.isfinite(list(loss.values())).all() and loss["device"] != loss["plain"]
    assert loss["opencv"] == pytest.approx(loss["plain"], rel=0.02)
