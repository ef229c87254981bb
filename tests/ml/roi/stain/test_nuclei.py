"""The nucleus mask on synthetic nuclei with a known mask."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError, ShapeError
from ml.roi.stain.nuclei import nucleus_mask


def drawn_nuclei(*, side=400, radius_px=5.0, spacing=24, density=0.5, noise=0.02, seed=0):
    """(channel, truth, centres): ellipses on a jittered grid over a faint uneven ground."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((side, side), np.uint8)
    centres = []
    for y in range(spacing, side - spacing + 1, spacing):
        for x in range(spacing, side - spacing + 1, spacing):
            centre = np.array([x, y]) + rng.integers(-3, 4, 2)
            axes = (round(radius_px * 1.15), round(radius_px * 0.85))
            cv2.ellipse(truth, centre.tolist(), axes, rng.uniform(0, 180), 0, 360, 1, -1)
            centres.append(centre)
    ground = 0.1 + 0.1 * np.linspace(0, 1, side)[:, None] * np.ones(side)
    channel = cv2.GaussianBlur(truth * density + ground, (0, 0), 0.8)
    channel = channel + rng.normal(0, noise, channel.shape)
    return channel.astype(np.float32), truth > 0, np.array(centres, float)


def dice(a, b):
    return 2 * (a & b).sum() / (a.sum() + b.sum())


@pytest.mark.parametrize(
    ("mpp", "radius_px", "spacing"), [(1.0, 4.0, 18), (0.5, 8.0, 36), (0.7, 5.0, 22)]
)
def test_nuclei_are_found_at_their_positions(mpp, radius_px, spacing):
    channel, truth, centres = drawn_nuclei(radius_px=radius_px, spacing=spacing)
    mask = nucleus_mask(channel, mpp=mpp)
    assert dice(mask.mask, truth) > 0.85
    distance = np.linalg.norm(mask.centre_px[:, None] - centres[None], axis=2)
    assert (distance.min(axis=0) < radius_px).mean() > 0.97
    assert abs(len(mask) - len(centres)) < 0.1 * len(centres)


def test_the_mask_is_invariant_to_the_strength_of_the_stain():
    channel, truth, _ = drawn_nuclei(density=0.4)
    weak, strong = (nucleus_mask(channel * gain, mpp=1.0).mask for gain in (1.0, 2.0))
    assert dice(weak, strong) > 0.95 and dice(strong, truth) > 0.8


def test_the_radius_follows_the_size_of_the_nuclei():
    small = nucleus_mask(drawn_nuclei(radius_px=3.0)[0], mpp=1.0)
    large = nucleus_mask(drawn_nuclei(radius_px=6.0)[0], mpp=1.0)
    assert np.median(small.radius_um) < np.median(large.radius_um)


def test_a_large_smooth_area_of_stain_is_not_a_nucleus():
    channel = np.full((300, 300), 0.1, np.float32)
    cv2.circle(channel, (150, 150), 70, 0.7, -1)
    assert not nucleus_mask(cv2.GaussianBlur(channel, (0, 0), 6), mpp=1.0).mask.any()


@pytest.mark.parametrize("value", [0.0, 0.6])
def test_a_uniform_field_has_no_nuclei(value):
    mask = nucleus_mask(np.full((64, 64), value, np.float32), mpp=1.0)
    assert len(mask) == 0 and not mask.mask.any()


def test_too_coarse_pixels_raise_an_error():
    with pytest.raises(BadInputError, match=r"2 .*4"):
        nucleus_mask(np.zeros((64, 64), np.float32), mpp=4)


def test_another_shape_or_type_raises_an_error():
    with pytest.raises(ShapeError, match=r"expected \(H, W\) float32"):
        nucleus_mask(np.zeros((64, 64, 3), np.float32), mpp=1)
