"""The key point encoder: invariances, masks and errors."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from shapely import affinity
from shapely.geometry import MultiPolygon, Point, Polygon, box

from ml.errors import CancelledError, EmptyRegionError, InvalidGeometryError, ShapeError
from ml.imaging.slides.slide import open_slide
from ml.keypoints.descriptors.tessera import load
from ml.networks.vlad import Vlad, VladConfig
from ml.roi.keypoints.encoder import KeypointEncoder, KeypointEncoderConfig
from ml.training.common.clusters import k_means

REGION = Polygon([(210, 190), (300, 200), (310, 290), (200, 310)])
CONFIG = KeypointEncoderConfig(vlad=VladConfig(words=8, out_dim=1024))


@pytest.fixture(scope="module")
def encoder(mucosa):
    """Encoder with words of other tissue, without projection."""
    made = KeypointEncoder(
        name="mine",
        version="1",
        config_hash="abc",
        config=CONFIG,
        network=Vlad(CONFIG.vlad),
        descriptor=load(),
    )
    rows = torch.from_numpy(made.describe(made.view_of_image(mucosa(400, 400, seed=9)))[1])
    made._network.words.copy_(k_means(rows, CONFIG.vlad.words, 10, seed=0))
    return made


@pytest.fixture(scope="module")
def image(mucosa):
    return mucosa(500, 520)


@pytest.fixture(scope="module")
def vector(encoder, image):
    return encoder.embed(image, REGION)


@pytest.fixture(scope="module")
def unrelated(encoder, mucosa, vector):
    """Distance to the vector of another place."""
    return float(np.linalg.norm(encoder.embed(mucosa(500, 520, seed=4), REGION) - vector))


def away(one, other):
    return float(np.linalg.norm(one - other))


def test_a_vector_has_unit_length_and_is_deterministic(encoder, image, vector):
    assert vector.shape == (encoder.dim,) == (1024,) and vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(encoder.embed(image, REGION), vector)
    assert encoder.embed(image[..., 0], REGION).shape == (1024,)


def test_a_vector_is_nearly_invariant_to_rotation(encoder, image, vector, unrelated):
    quarter = np.ascontiguousarray(np.rot90(image, -1))  # (x, y) to (height - y, x)
    turned = affinity.affine_transform(REGION, [0, -1, 1, 0, image.shape[0], 0])
    assert away(encoder.embed(quarter, turned), vector) < 0.6 * unrelated
    matrix = cv2.getRotationMatrix2D((255, 247), 35, 1.0)
    slanted = cv2.warpAffine(image, matrix, (520, 500), borderMode=cv2.BORDER_REFLECT)
    polygon = affinity.affine_transform(REGION, [*matrix[0, :2], *matrix[1, :2], *matrix[:, 2]])
    assert away(encoder.embed(slanted, polygon), vector) < 0.8 * unrelated


def test_a_vector_is_nearly_invariant_to_distance(encoder, image, mucosa):
    region = box(120, 110, 400, 390)
    small = cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    half = affinity.scale(region, 0.5, 0.5, origin=(0, 0))
    here = encoder.embed(image, region)
    elsewhere = away(encoder.embed(mucosa(500, 520, seed=4), region), here)
    assert away(encoder.embed(small, half), here) < 0.5 * elsewhere


def test_regions_are_scaled_to_the_same_area(encoder, image):
    for side in (64, 128, 400):
        view = encoder.view_of_image(image, box(20, 20, 20 + side, 20 + side))
        assert view.downsample == pytest.approx(max(side / 128, 0.5))
        assert view.inside.sum() == pytest.approx((side / view.downsample) ** 2, rel=0.05)
    tiny = encoder.view_of_image(image, box(100, 100, 120, 120))
    assert tiny.downsample == 0.5


def test_points_are_inside_the_region_and_boxes_inside_the_image(encoder, image):
    embedding = encoder.embed_image(image, REGION)
    assert embedding.patch_boxes_l0.shape == (embedding.n_patches, 4)
    centres = (embedding.patch_boxes_l0[:, :2] + embedding.patch_boxes_l0[:, 2:]) / 2
    grown = REGION.buffer(2)
    assert all(grown.contains(Point(c)) for c in centres)
    assert embedding.downsample == pytest.approx(np.sqrt(REGION.area) / 128)
    assert (embedding.stain, embedding.density) == ("none", 1.0) and embedding.seconds > 0


def test_holes_and_several_parts_change_the_vector(encoder, image):
    full = box(100, 100, 300, 300)
    hole = Polygon(full.exterior.coords, [box(150, 150, 250, 250).exterior.coords])
    view = encoder.view_of_image(image, hole)
    middle = [int(s / 2) for s in view.inside.shape]
    assert not view.inside[middle[0], middle[1]]
    parts = MultiPolygon([box(50, 50, 150, 150), box(300, 300, 400, 400)])
    both = encoder.view_of_image(image, parts)
    share = 2 * 100**2 / both.downsample**2
    assert both.inside.sum() == pytest.approx(share, rel=0.06)
    vectors = [encoder.embed(image, region) for region in (full, hole, parts)]
    assert away(vectors[0], vectors[1]) > 0.05 and away(vectors[0], vectors[2]) > 0.3


@pytest.fixture(scope="module")
def scoped(image):
    """The image with a circular field of view."""
    y, x = np.mgrid[:500, :520]
    inside = np.hypot(x - 260, y - 250) < 220
    return np.asarray(image * inside[..., None], np.uint8)


def test_points_outside_the_field_of_view_are_not_described(encoder, scoped):
    with pytest.raises(EmptyRegionError, match="outside"):
        encoder.embed(scoped, box(0, 0, 60, 60))
    rim = encoder.view_of_image(scoped, box(0, 150, 200, 350))
    assert 0.3 < rim.inside.mean() < 0.95
    inner = encoder.view_of_image(scoped, box(200, 200, 300, 300))
    assert inner.inside.sum() == pytest.approx(128**2, rel=0.05)


def test_a_region_without_texture_raises_an_error(encoder):
    flat = np.full((300, 300, 3), 120, np.uint8)
    with pytest.raises(EmptyRegionError, match="no texture"):
        encoder.embed(flat, box(50, 50, 250, 250))


def test_a_mosaic_and_its_pixels_give_equal_vectors(encoder, image, vector, unrelated, tmp_path):
    Image.fromarray(image).save(tmp_path / "mosaic.png")
    with open_slide(tmp_path / "mosaic.png") as slide:
        region = encoder.embed_region(slide, REGION, mpp=0.5)
        full = encoder.embed_region(slide, None)
    assert away(region.vector, vector) < 0.15 * unrelated
    here = encoder.embed_image(image, REGION)
    assert region.n_patches == pytest.approx(here.n_patches, abs=3)
    assert full.downsample == pytest.approx(np.sqrt(500 * 520) / 128)


def test_empty_parts_of_a_mosaic_are_not_described(encoder, image, tmp_path):
    torn = image.copy()
    torn[:, 260:] = 0
    Image.fromarray(torn).save(tmp_path / "torn.png")
    with open_slide(tmp_path / "torn.png") as slide:
        embedding = encoder.embed_region(slide, box(160, 150, 360, 350))
        assert embedding.patch_boxes_l0[:, 0].max() < 262
        with pytest.raises(EmptyRegionError, match="outside"):
            encoder.embed_region(slide, box(300, 150, 400, 350))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_invalid_images_and_regions_raise_an_error(encoder, image):
    with pytest.raises(ShapeError, match=r"image: expected \(H, W, 3\) uint8"):
        encoder.embed(np.zeros((50, 50, 3)))
    with pytest.raises(EmptyRegionError, match="520 x 500 px"):
        encoder.embed(image, box(5000, 0, 5100, 50))
    with pytest.raises(InvalidGeometryError, match="finite"):
        encoder.embed(image, Polygon([(0, 0), (float("nan"), 5), (9, 9)]))


def test_progress_is_reported_and_can_cancel(encoder, image):
    calls = []
    encoder.embed_image(image, REGION, progress=lambda *step: calls.append(step))
    assert calls[-1] == (1, 1, "describing")

    def cancel(done, total, phase):
        raise CancelledError("asked to stop")

    with pytest.raises(CancelledError):
        encoder.embed_image(image, REGION, progress=cancel)
