"""Frames that follow a keyframe's transform by tracking."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from ml.geometry import transform_points
from ml.imaging.samples.packaged import packaged_image
from ml.mosaic.direct.alignment import DirectAlignment, align_views
from ml.mosaic.direct.pyramid import DirectView, direct_view
from ml.mosaic.registration.links import Link, point_info
from ml.mosaic.registration.motion_model import motion_generators
from ml.mosaic.registration.planarity import is_planar_motion, is_planar_scene

SIDE = 200
TURN = np.array([[0.99, -0.02, 3], [0.02, 0.99, -1], [0, 0, 1.0]])


def _alignment(strays_px: float, sigma_px: float) -> DirectAlignment:
    """49 cells that stray alike to all sides, each known to a deviation."""
    at = np.linspace(20, SIDE - 20, 7)
    xy_a = np.stack([axis.ravel() for axis in np.meshgrid(at, at)], axis=1)
    angle = np.arange(len(xy_a)) * 2.4
    strays = strays_px * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    xy_b = transform_points(TURN, xy_a) + strays
    root = np.broadcast_to(np.eye(2) / sigma_px, (len(xy_a), 2, 2))
    return DirectAlignment(
        TURN, 0.9, 1.0, xy_a.astype(np.float32), xy_b.astype(np.float32), np.array(root)
    )


@pytest.mark.parametrize(
    ("strays_px", "sigma_px", "rides"),
    [(0.0, 0.01, True), (0.09, 0.01, True), (0.12, 0.01, False), (0.12, 0.2, True)],
)
def test_planar_motion_tolerates_a_tenth_of_a_pixel_above_the_noise(
    strays_px: float, sigma_px: float, rides: bool
) -> None:
    assert is_planar_motion(_alignment(strays_px, sigma_px)) == rides


def _link(strays_px: float, sigma_px: float) -> Link:
    cells = _alignment(strays_px, sigma_px)
    light = np.zeros(3, np.float32)
    return Link(1, 0, cells.xy_a, cells.xy_b, cells.matrix, 300, light, cells.root_info, "direct")


def test_a_scene_is_planar_if_nine_links_in_ten_are() -> None:
    placed = {0: np.eye(3), 1: TURN}
    flat, bent = _link(0.0, 0.01), _link(0.13, 0.01)
    assert is_planar_scene([*9 * [flat], bent], placed)
    assert not is_planar_scene([*8 * [flat], bent], placed)
    assert not is_planar_scene([flat], {0: np.eye(3), 1: np.diag([1.02, 1, 1]) @ TURN})
    assert is_planar_scene([bent], {0: np.eye(3)})


def test_a_scene_linked_by_key_points_only_is_not_known_to_be_planar() -> None:
    link = _link(1.0, 0.01)
    points = replace(link, kind="points", root_info=point_info(len(link.xy_a)))
    assert not is_planar_scene([points], {0: np.eye(3), 1: TURN})


def _view(parallax_px: float) -> DirectView:
    """A picture moved by 1.3 px, hills of it by up to so much more."""
    picture = cv2.cvtColor(packaged_image("retina.jpg"), cv2.COLOR_RGB2GRAY)
    rows, columns = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    hill = np.sin(columns / 20) * np.sin(rows / 17)
    x = columns + 500 + (1.3 + parallax_px * hill if parallax_px >= 0 else 0)
    grey = cv2.remap(picture, x.astype(np.float32), rows + 600, cv2.INTER_CUBIC)
    noise = np.random.default_rng(round(abs(parallax_px) * 100)).normal(0, 1.5, grey.shape)
    return direct_view((grey + noise).astype(np.float32), np.ones(grey.shape, bool))


@pytest.mark.parametrize(("parallax_px", "rides"), [(0.0, True), (0.8, False)])
def test_a_plane_is_tracked_and_relief_is_not(parallax_px: float, rides: bool) -> None:
    alignment = align_views(
        _view(parallax_px),
        _view(-1),
        np.eye(3),
        generators=motion_generators("affine"),
        work_shape=(SIDE, SIDE),
    )
    assert alignment is not None
    assert is_planar_motion(alignment) == rides
