"""Stills, crops and looks for the training of the adapted vision transformer."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.training.common.stills import areas_mask
from ml.training.vit.novel_view import MotionConfig
from ml.training.vit.pairs import (
    BURNT_IN,
    LookConfig,
    MaskedStill,
    draw_pair,
    make_still,
    with_look,
)


def still(shape=(120, 200), depth=None, mask=None):
    noise = np.random.default_rng(0).integers(40, 256, (*shape, 3)).astype(np.uint8)
    image = cv2.GaussianBlur(noise, (0, 0), 1.5)
    return MaskedStill("a", image, np.ones(shape, bool) if mask is None else mask, depth)


def test_text_and_logo_are_masked():
    mask = areas_mask((720, 1280), BURNT_IN)
    assert mask[655:715, 60:260].all() and mask[675:715, 1120:1195].all()
    assert not mask[:640].any() and not mask[650:690, 300:1050].any()


def test_a_still_is_scaled_and_masked(tmp_path):
    noise = np.random.default_rng(0).integers(60, 256, (90, 160, 3)).astype(np.uint8)
    cv2.imwrite(str(tmp_path / "a.png"), noise)
    still = make_still(tmp_path / "a.png", working_px=80, depth_of=lambda s, i: np.ones((45, 80)))
    assert still.image.shape == (45, 80, 3) and still.name == "a"
    assert still.mask[:40].all() and not still.mask[-2:, :10].any()
    assert still.depth is not None and still.depth.shape == (45, 80)
    (tmp_path / "b.png").write_bytes(b"none")
    with pytest.raises(BadInputError, match=r"b\.png"):
        make_still(tmp_path / "b.png", working_px=80)


def test_without_motion_and_colour_changes_both_crops_are_equal():
    pair = draw_pair(np.random.default_rng(0), still(), crop_px=48)
    assert pair.source.shape == (48, 48, 3)
    assert np.array_equal(pair.source, pair.view.image)
    assert pair.view.visible.all() and pair.valid.all()


def test_the_view_shows_the_source_at_p_gt():
    pair = draw_pair(np.random.default_rng(3), still(), crop_px=64, motion=MotionConfig())
    v, u = np.nonzero(pair.view.visible & pair.valid)
    at = pair.view.xy_t[v, u]
    seen = cv2.remap(pair.view.image, at[None, :, 0], at[None, :, 1], cv2.INTER_LINEAR)[0]
    away = np.abs(seen.astype(int) - pair.source[v, u]).mean(axis=1)
    assert len(v) > 500 and np.median(away) < 6


def test_a_pair_is_deterministic_for_a_seed():
    first, two = (
        draw_pair(
            np.random.default_rng(5),
            still(),
            crop_px=40,
            zoom_out=(0.8, 1.4),
            motion=MotionConfig(),
            look=LookConfig(),
        )
        for _ in range(2)
    )
    assert np.array_equal(first.view.image, two.view.image)
    assert np.array_equal(first.view.xy_t, two.view.xy_t, equal_nan=True)


def test_given_depth_decides_the_parallax():
    flat, steep = np.ones((120, 200)), np.linspace(0.5, 2, 200)[None].repeat(120, axis=0)
    motion = MotionConfig(tilt_deg=0, roll_deg=0, shift=0.1, zoom=0)
    views = [
        draw_pair(np.random.default_rng(1), still(depth=d), crop_px=40, motion=motion).view
        for d in (flat, steep)
    ]
    v, u = np.mgrid[:40, :40]
    shift = [np.nanstd((view.xy_t - np.stack([u, v], axis=2))[:, :, 0]) for view in views]
    assert shift[0] < 1e-2 < shift[1]


def test_crops_prefer_the_trusted_field():
    mask = np.zeros((120, 200), bool)
    mask[:, 120:] = True
    shares = [
        draw_pair(np.random.default_rng(s), still(mask=mask), crop_px=40).valid.mean()
        for s in range(10)
    ]
    assert np.median(shares) >= 0.6  # the field is 0.4 of the still


def test_a_crop_larger_than_the_still_is_shrunk_to_it():
    pair = draw_pair(np.random.default_rng(0), still((50, 60)), crop_px=40, zoom_out=(3.0, 3.0))
    assert pair.source.shape == (40, 40, 3) and pair.valid.mean() > 0.9


def test_zero_strength_changes_nothing():
    image = still().image
    none = LookConfig(brightness=0, saturation=0, contrast=0, blur_px=0, noise=0)
    changed = with_look(np.random.default_rng(0), image, none)
    assert np.abs(changed.astype(int) - image).max() <= 1
    assert not np.array_equal(with_look(np.random.default_rng(0), image, LookConfig()), image)
