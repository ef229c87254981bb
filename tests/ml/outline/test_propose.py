"""Outlines from one click, on discs and glands whose edges are known."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from shapely import Point, Polygon

from ml.errors import BadInputError, EmptyRegionError, ShapeError, UnknownNameError
from ml.outline import OutlineConfig, propose_outline
from ml.outline.paths import closed_paths
from ml.types import ImageU8

TISSUE, NUCLEI, LUMEN = (226, 178, 205), (96, 58, 140), (243, 240, 242)
SIZE = (300, 400)


def gland(centre: tuple[int, int], axes: tuple[int, int], angle_deg: float = 0.0) -> ImageU8:
    """A pale lumen in a layer of nuclei, in noisy pink tissue."""
    image = np.full((*SIZE, 3), TISSUE, np.uint8)
    cv2.ellipse(image, centre, axes, angle_deg, 0, 360, NUCLEI, -1)
    cv2.ellipse(image, centre, (axes[0] - 14, axes[1] - 14), angle_deg, 0, 360, LUMEN, -1)
    noise = np.random.default_rng(0).normal(0, 6, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def overlap(ring: np.ndarray, truth: Polygon) -> float:
    found = Polygon(ring)
    return float(found.intersection(truth).area / found.union(truth).area)


def test_the_likely_ring_is_the_outer_edge_of_the_nuclei_wherever_inside_one_clicks() -> None:
    image = gland((200, 150), (70, 70))
    truth = Point(200, 150).buffer(70)
    for xy in ((200.0, 150.0), (228.0, 130.0)):
        found = propose_outline(image, xy)
        assert overlap(found.rings[found.likely], truth) > 0.9


def test_a_long_gland_is_followed_along_its_axis() -> None:
    image = gland((200, 150), (140, 36), 20)
    corners = cv2.ellipse2Poly((200, 150), (140, 36), 20, 0, 360, 3)
    found = propose_outline(image, (200.0, 150.0))
    assert overlap(found.rings[found.likely], Polygon(corners)) > 0.85


def test_a_gland_that_the_image_cuts_ends_at_the_image() -> None:
    found = propose_outline(gland((20, 150), (70, 70)), (30.0, 150.0))
    ring = found.rings[found.likely]
    truth = (
        Point(20, 150).buffer(70).intersection(Polygon([(0, 0), (400, 0), (400, 300), (0, 300)]))
    )
    assert ring.min() >= 0
    assert overlap(ring, truth) > 0.85


def test_rings_are_nested_from_tight_to_wide_and_hold_the_point() -> None:
    image = gland((150, 150), (50, 50))
    second = gland((270, 150), (60, 60))
    image = np.minimum(image, second)
    found = propose_outline(image, (150.0, 150.0))
    areas = [Polygon(ring).area for ring in found.rings]
    assert areas == sorted(areas)
    assert 0 <= found.likely < len(found.rings)
    assert all(Polygon(ring).buffer(1).contains(Point(150, 150)) for ring in found.rings)


def test_the_same_click_gives_the_same_rings_at_twice_the_size() -> None:
    image = gland((200, 150), (70, 50))
    large = cv2.resize(image, None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC)
    small_ring, large_ring = (
        propose_outline(one, (200.0 * by, 150.0 * by)) for one, by in ((image, 1), (large, 4))
    )
    truth = Polygon(small_ring.rings[small_ring.likely])
    assert overlap(large_ring.rings[large_ring.likely] / 4, truth) > 0.95


def test_lightness_finds_a_pale_polyp_in_darker_mucosa() -> None:
    image = np.full((*SIZE, 3), (120, 60, 50), np.uint8)
    cv2.circle(image, (210, 140), 60, (190, 120, 105), -1)
    found = propose_outline(image, (200.0, 150.0), config=OutlineConfig(signal="lightness"))
    assert overlap(found.rings[found.likely], Point(210, 140).buffer(60)) > 0.9


def test_empty_glass_has_nothing_to_outline() -> None:
    noise = np.random.default_rng(1).normal(243, 1.5, (*SIZE, 3))
    with pytest.raises(EmptyRegionError, match="nothing to outline"):
        propose_outline(np.clip(noise, 0, 255).astype(np.uint8), (200.0, 150.0))


def test_what_cannot_be_outlined_is_named() -> None:
    image = gland((200, 150), (70, 70))
    with pytest.raises(ShapeError, match=r"\(H, W, 3\) uint8.*\(300, 400\) uint8"):
        propose_outline(image[..., 0], (1.0, 1.0))
    with pytest.raises(ShapeError, match=r"at least 32 px.*400 x 20"):
        propose_outline(image[:20], (1.0, 1.0))
    with pytest.raises(BadInputError, match="outside the image of 400 x 300"):
        propose_outline(image, (401.0, 10.0))
    with pytest.raises(UnknownNameError, match="signal"):
        propose_outline(image, (200.0, 150.0), config=OutlineConfig(signal="heat"))


def test_the_cheapest_closed_path_is_the_one_that_was_planted() -> None:
    cost = np.ones((1, 16, 20), np.float32)
    planted = np.array([9, 10, 11, 12, 12, 11, 10, 9, 8, 7, 6, 5, 5, 6, 7, 8])
    cost[0, np.arange(16), planted] = -1
    found = closed_paths(cost, most_step=1, step_cost=0.01)
    assert found.tolist() == [planted.tolist()]
