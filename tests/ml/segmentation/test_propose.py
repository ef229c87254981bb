"""Outlines from one click, on synthetic discs and glands."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from shapely import Point, Polygon
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError, EmptyRegionError, NoTissueError, ShapeError, UnknownNameError
from ml.imaging.slides.slide import open_slide
from ml.segmentation.paths import closed_paths
from ml.segmentation.propose import OutlineConfig, propose_outline
from ml.types import ArrayF32, ImageU8
from tests.ml.imaging.tissue.test_glass import tinted_glass

TISSUE, NUCLEI, LUMEN = (226, 178, 205), (96, 58, 140), (243, 240, 242)
SIZE = (300, 400)
STAINED = 200  # red of the stained section, below that of its glass


def gland(centre: tuple[int, int], axes: tuple[int, int], angle_deg: float = 0.0) -> ImageU8:
    """A pale lumen in a layer of nuclei, in noisy pink tissue."""
    image = np.full((*SIZE, 3), TISSUE, np.uint8)
    cv2.ellipse(image, centre, axes, angle_deg, 0, 360, NUCLEI, -1)
    cv2.ellipse(image, centre, (axes[0] - 14, axes[1] - 14), angle_deg, 0, 360, LUMEN, -1)
    noise = np.random.default_rng(0).normal(0, 6, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def overlap(ring: np.ndarray, truth: BaseGeometry) -> float:
    polygon = Polygon(ring)
    return float(polygon.intersection(truth).area / polygon.union(truth).area)


def test_the_likely_ring_is_the_outer_edge_of_the_nuclei_for_any_click_inside() -> None:
    image = gland((200, 150), (70, 70))
    truth = Point(200, 150).buffer(70)
    for xy in ((200.0, 150.0), (228.0, 130.0)):
        proposal = propose_outline(image, xy)
        assert overlap(proposal.rings[proposal.likely], truth) > 0.9


def test_a_long_gland_is_followed_along_its_axis() -> None:
    image = gland((200, 150), (140, 36), 20)
    corners = cv2.ellipse2Poly((200, 150), (140, 36), 20, 0, 360, 3)
    proposal = propose_outline(image, (200.0, 150.0))
    assert overlap(proposal.rings[proposal.likely], Polygon(corners)) > 0.85


def test_the_outline_of_a_truncated_gland_ends_at_the_image_border() -> None:
    proposal = propose_outline(gland((20, 150), (70, 70)), (30.0, 150.0))
    ring = proposal.rings[proposal.likely]
    truth = (
        Point(20, 150).buffer(70).intersection(Polygon([(0, 0), (400, 0), (400, 300), (0, 300)]))
    )
    assert ring.min() >= 0
    assert overlap(ring, truth) > 0.85


def test_rings_are_nested_and_contain_the_point() -> None:
    image = gland((150, 150), (50, 50))
    second = gland((270, 150), (60, 60))
    proposal = propose_outline(np.asarray(np.minimum(image, second), np.uint8), (150.0, 150.0))
    areas = [Polygon(ring).area for ring in proposal.rings]
    assert areas == sorted(areas)
    assert 0 <= proposal.likely < len(proposal.rings)
    assert all(Polygon(ring).buffer(1).contains(Point(150, 150)) for ring in proposal.rings)


def test_rings_do_not_depend_on_the_size_of_the_image() -> None:
    image = gland((200, 150), (70, 50))
    cubic = cv2.INTER_CUBIC
    large = np.asarray(cv2.resize(image, None, fx=4, fy=4, interpolation=cubic), np.uint8)
    small_ring, large_ring = (
        propose_outline(item, (200.0 * by, 150.0 * by)) for item, by in ((image, 1), (large, 4))
    )
    truth = Polygon(small_ring.rings[small_ring.likely])
    assert overlap(large_ring.rings[large_ring.likely] / 4, truth) > 0.95


def test_lightness_finds_a_pale_polyp_in_darker_mucosa() -> None:
    image = np.full((*SIZE, 3), (120, 60, 50), np.uint8)
    cv2.circle(image, (210, 140), 60, (190, 120, 105), -1)
    proposal = propose_outline(image, (200.0, 150.0), config=OutlineConfig(signal="lightness"))
    assert overlap(proposal.rings[proposal.likely], Point(210, 140).buffer(60)) > 0.9


@pytest.mark.parametrize("od", [0.0, 0.1, 0.17])
def test_a_click_on_clear_or_tinted_glass_raises_an_error(od: float) -> None:
    image = tinted_glass(od, SIZE)
    with pytest.raises(NoTissueError, match="no tissue"):
        propose_outline(image, (200.0, 150.0))
    image[:, :150] = gland((70, 150), (60, 60))[:, :150]
    with pytest.raises(NoTissueError, match="no tissue"):
        propose_outline(image, (300.0, 150.0))
    assert propose_outline(image, (70.0, 150.0)).rings


def test_tissue_without_a_boundary_raises_an_error() -> None:
    image = np.full((*SIZE, 3), NUCLEI, np.uint8)
    with pytest.raises(EmptyRegionError, match="outline"):
        propose_outline(image, (200.0, 150.0))


@pytest.mark.slow
@pytest.mark.parametrize("side_px", [640, 2560])
def test_clicks_on_the_pink_glass_of_real_sections_raise_an_error(
    tessera_data: Path, side_px: int
) -> None:
    path = tessera_data / "histology" / "sections" / "5714_HE_BT_D1.jpg"
    with open_slide(path) as slide:
        thumbnail = slide.thumbnail(1024)
        px_l0 = slide.info.width_px / thumbnail.shape[1]
        is_stained = cv2.GaussianBlur(thumbnail[..., 0], (0, 0), 6) < STAINED
        to_stained, to_glass = (
            cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 5) * px_l0
            for mask in (~is_stained, is_stained)
        )
        margin = round(side_px / 2 / px_l0)
        for distance in (to_stained, to_glass):  # windows are inside the image
            distance[:margin] = distance[-margin:] = 0
            distance[:, :margin] = distance[:, -margin:] = 0

        def windows(distance: ArrayF32, least_px: float) -> list[ImageU8]:
            rows, columns = np.nonzero(distance > least_px)
            chosen = np.random.default_rng(0).integers(0, rows.size, 12)
            corners = [
                (columns[i] * px_l0 - side_px / 2, rows[i] * px_l0 - side_px / 2) for i in chosen
            ]
            return [slide.read_region(corner, (side_px, side_px), (640, 640)) for corner in corners]

        glass, tissue = windows(to_stained, side_px / 2), windows(to_glass, 200)
    for image in glass:
        with pytest.raises(NoTissueError):
            propose_outline(image, (320.0, 320.0))
    for image in tissue:
        assert propose_outline(image, (320.0, 320.0)).rings


def test_invalid_input_raises_an_error_that_names_it() -> None:
    image = gland((200, 150), (70, 70))
    with pytest.raises(ShapeError, match=r"\(H, W, 3\) uint8.*\(300, 400\) uint8"):
        propose_outline(image[..., 0], (1.0, 1.0))
    with pytest.raises(ShapeError, match=r"32 px.*400 x 20"):
        propose_outline(image[:20], (1.0, 1.0))
    with pytest.raises(BadInputError, match="400 x 300"):
        propose_outline(image, (401.0, 10.0))
    with pytest.raises(UnknownNameError, match="signal"):
        propose_outline(image, (200.0, 150.0), config=OutlineConfig(signal="heat"))


def test_the_closed_path_has_minimum_cost() -> None:
    cost = np.ones((1, 16, 20), np.float32)
    planted = np.array([9, 10, 11, 12, 12, 11, 10, 9, 8, 7, 6, 5, 5, 6, 7, 8])
    cost[0, np.arange(16), planted] = -1
    paths = closed_paths(cost, max_step=1, step_cost=0.01)
    assert paths.tolist() == [planted.tolist()]
