"""The simulated scope: what its pose, lamp and highlights do, by hand."""

from __future__ import annotations

import numpy as np

from ml.geometry import transform_points
from ml.imaging.samples.scope import Highlights, light_view, scope_light, scope_pose, scope_view


def test_the_centre_of_the_frame_shows_the_scope_position() -> None:
    H = scope_pose((120.0, 80.0), 0.4, 0.9, np.array([1e-4, -2e-4]), size_px=101)
    np.testing.assert_allclose(transform_points(H, np.array([[50.0, 50.0]])), [[120, 80]])
    assert H[2, 2] == 1


def test_a_level_scope_copies_the_image() -> None:
    picture = np.random.default_rng(0).integers(0, 255, (90, 90, 3)).astype(np.uint8)
    H = scope_pose((40.0, 30.0), 0.0, 1.0, np.zeros(2), size_px=21)
    np.testing.assert_array_equal(scope_view(picture, H, 21), picture[20:41, 30:51])


def test_the_light_falls_off_to_a_dark_rim_outside_the_mask() -> None:
    light, mask = scope_light(101)
    assert light[50, 50] == 1 and light[0, 0] == 0 and mask[0, 0] == 0
    assert light[50, 50] > light[50, 80] > light[50, 96] > 0
    assert (light[mask > 0] > 0.5).all()
    np.testing.assert_array_equal(light, light[::-1, ::-1])


def test_highlights_saturate_at_their_positions() -> None:
    highlight = Highlights(*(np.array([v]) for v in (30.0, 60.0, 5.0, 0.0, 0.0)))
    glare = highlight.glare(0, 101)
    assert glare.shape == (101, 101, 1)
    y, x = np.unravel_index(glare.argmax(), (101, 101))
    assert abs(x - 30) <= 5 and abs(y - 63) <= 5
    light, _ = scope_light(101)
    dark = np.zeros((101, 101, 3), np.float32)
    lit = light_view(dark, light, glare)
    np.testing.assert_allclose(lit[..., 1], (250 * glare * light[..., None])[..., 0])
