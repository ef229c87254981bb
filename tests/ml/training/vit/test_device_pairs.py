"""Pairs made on the device are those of the processor, within stated tolerances."""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
import pytest
import torch

from ml.training.common.run import TrainingRun
from ml.training.vit.command import train_vit
from ml.training.vit.depth import synthetic_depth
from ml.training.vit.device_pairs import DevicePairs, drawn_depth, synthesised, with_looks
from ml.training.vit.novel_view import MotionConfig, random_camera, random_motion, synthesise_view
from ml.training.vit.pairs import LookConfig, MaskedStill
from tests.ml.training.vit.test_command import SHORT, TINY, data

SIDE = 72
SHORTEST = dataclasses.replace(SHORT, epochs=1, steps=1)
__all__ = ["data"]


def picture(seed=0, size=(90, 120)):
    rng = np.random.default_rng(seed)
    smooth = cv2.GaussianBlur(rng.standard_normal((*size, 3)), (0, 0), 2.0)
    return np.clip(128 + 300 * smooth, 0, 255).astype(np.uint8)


def tensor(values, compute):
    return torch.from_numpy(np.asarray(values, np.float32)).to(compute.device)


def test_a_moved_camera_sees_what_it_sees_on_the_processor(fast):
    rng, config = np.random.default_rng(4), MotionConfig(tilt_deg=12, roll_deg=30)
    images = [picture(i, (SIDE, SIDE)) for i in range(3)]
    depths = [synthetic_depth(rng, (SIDE, SIDE)) for _ in images]
    cameras = [random_camera(rng, SIDE, config) for _ in images]
    motions = [random_motion(rng, distance=1.0, field=1.0, config=config) for _ in images]
    pixels = tensor(images, fast).permute(0, 3, 1, 2)
    found = synthesised(pixels, tensor(depths, fast), np.stack(cameras), np.stack(motions))
    for i, (image, depth) in enumerate(zip(images, depths, strict=True)):
        wanted = synthesise_view(image, depth, camera=cameras[i], T_t_from_s=motions[i])
        assert np.abs(found.xy_t[i].cpu().numpy() - wanted.xy_t).max() < 0.01
        source = found.xy_s[i].cpu().numpy()
        covered = np.isfinite(source[..., 0])
        assert (covered == wanted.covered).mean() > 0.99
        both = covered & wanted.covered
        apart = np.hypot(*(source - wanted.xy_s)[both].T)
        assert np.quantile(apart, 0.95) < 0.05
        assert (found.visible[i].cpu().numpy() == wanted.visible).mean() > 0.98
        seen = found.image[i].permute(1, 2, 0).cpu().numpy()
        assert np.abs(seen - wanted.image)[both].mean() < 1.5
    assert covered.mean() > 0.4


def test_a_surface_is_drawn_as_on_the_processor(fast):
    found = drawn_depth(np.random.default_rng(1), 60, 0.35, fast.device)[0, 0].cpu().numpy()
    rng = np.random.default_rng(1)
    wanted = synthetic_depth(rng, (60, 60), relief=0.35 * rng.uniform(0, 1))
    assert np.abs(found - wanted).max() < 1e-3 and np.ptp(wanted) > 0.01


def test_each_look_changes_the_image(fast):
    image = tensor(picture(2), fast).permute(2, 0, 1)[None].repeat(4, 1, 1, 1)
    none = LookConfig(brightness=0, saturation=0, contrast=0, blur_px=0, noise=0)

    def look(config):
        noise = torch.Generator(fast.device).manual_seed(0)
        return with_looks(np.random.default_rng(0), image, config, noise)

    assert (look(none) - image).abs().max() <= 1
    for name, most in (("brightness", 0.4), ("saturation", 0.4), ("blur_px", 1.2), ("noise", 6.0)):
        strong = dict.fromkeys(LookConfig.__slots__, 0.0) | {name: most}
        assert (look(LookConfig(**strong)) - image).abs().mean() > 0.3, name


@pytest.mark.parametrize("has_depth", [False, True])
def test_a_batch_is_pairs_and_what_the_network_sees_of_them(fast, has_depth):
    depth = np.full((90, 120), 1.0) if has_depth else None
    still = MaskedStill("a", picture(), np.ones((90, 120), np.bool_), depth)
    made = DevicePairs(TINY, fast)
    pairs, pixels = made(np.random.default_rng(3), [still], 3)
    again, _ = made(np.random.default_rng(3), [still], 3)
    side = TINY.crop_px
    assert pixels.shape == (6, 3, side, side) and pixels.device.type == fast.device.type
    assert len(pairs) == 3 and pairs[0].view.xy_t.shape == (side, side, 2)
    for i, pair in enumerate(pairs):
        seen = (255 * pixels[3 + i]).permute(1, 2, 0).cpu().numpy()
        assert np.abs(seen - pair.view.image).max() < 0.01
        assert np.array_equal(pair.source, again[i].source)
        shown = pair.view.visible
        assert shown.mean() > 0.2 and np.isfinite(pair.view.xy_t[shown]).all()


def test_a_training_takes_them_where_work_is_batched(data, tmp_path, fast):
    runs = {
        "device": TrainingRun(SHORTEST, tmp_path / "a", compute=fast),
        "plain": TrainingRun(SHORTEST, tmp_path / "c"),
    }
    loss = {name: train_vit(run, data=data)["loss_first"] for name, run in runs.items()}
    assert np.isfinite(list(loss.values())).all()
    assert loss["device"] != loss["plain"]
