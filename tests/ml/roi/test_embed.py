"""Embedding of regions: shapes, consistency and errors."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from shapely.geometry import Polygon, box

from ml.errors import CancelledError, EmptyRegionError, InvalidGeometryError, ShapeError
from ml.imaging.slides.slide import open_slide
from ml.roi import load_encoder


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("default")


@pytest.fixture(scope="module")
def image(tissue):
    return tissue(900, 1200)


@pytest.fixture(scope="module")
def still(image, tmp_path_factory):
    path = tmp_path_factory.mktemp("still") / "still.png"
    Image.fromarray(image).save(path)
    return path


def test_a_vector_has_the_documented_shape_and_length(encoder, image):
    vector = encoder.embed(image)
    assert vector.shape == (encoder.dim,) and vector.dtype == np.float32
    weight = encoder.config.network.context_weight
    assert np.linalg.norm(vector) == pytest.approx(np.hypot(1, weight), rel=1e-4)


def test_embedding_is_deterministic(encoder, image):
    polygon = Polygon([(50, 50), (1000, 100), (800, 850), (100, 700)])
    assert np.array_equal(encoder.embed(image, polygon), encoder.embed(image, polygon))


def test_a_slide_and_its_pixels_give_equal_vectors(encoder, image, still):
    polygon = box(100, 100, 1000, 800)
    with open_slide(still) as slide:
        region = encoder.embed_region(slide, polygon, mpp=0.5)
    from_image = encoder.embed_image(image, polygon, mpp=0.5)
    assert region.n_patches == from_image.n_patches == len(region.patch_boxes_l0)
    assert np.linalg.norm(region.vector - from_image.vector) < 0.1
    assert region.downsample == 2.0 and region.stain == "none: switched off" and region.seconds > 0


def test_reading_by_patches_equals_a_single_read(encoder, still, monkeypatch):
    with open_slide(still) as slide:
        single_read = encoder.embed_region(slide, box(0, 0, 1200, 900))
        monkeypatch.setattr("ml.imaging.slides.patches.ONE_READ_PX", 0)
        apart = encoder.embed_region(slide, box(0, 0, 1200, 900))
    assert np.linalg.norm(single_read.vector - apart.vector) < 0.05


def test_patch_boxes_are_inside_the_image(encoder, image):
    boxes = encoder.embed_image(image, mpp=0.5).patch_boxes_l0
    assert boxes.min() >= 0 and boxes[:, 2].max() <= 1200 and boxes[:, 3].max() <= 900
    assert np.allclose(boxes[:, 2] - boxes[:, 0], 448)


def test_images_of_any_size_can_be_embedded(encoder, tissue):
    for height, width in ((224, 224), (60, 90), (300, 2000)):
        assert np.isfinite(encoder.embed(tissue(height, width))).all()
    assert encoder.embed(tissue(300, 300)[..., 0]).shape == (encoder.dim,)


def test_another_tissue_is_farther_than_another_section_of_the_same(encoder, tissue):
    same = [encoder.embed(tissue(900, 900, seed=s)) for s in (1, 2)]
    other = encoder.embed(tissue(900, 900, seed=3, nuclei_per_mpx=4000, radius_px=9))
    assert np.linalg.norm(same[0] - same[1]) < 0.5 * np.linalg.norm(same[0] - other)


def test_a_white_image_raises_an_error(encoder):
    with pytest.raises(EmptyRegionError, match="tissue"):
        encoder.embed(np.full((600, 600, 3), 255, np.uint8))


def test_a_region_of_background_raises_an_error(encoder, tissue):
    image = np.full((900, 2400, 3), 250, np.uint8)
    image[:, :900] = tissue(900, 900)
    with pytest.raises(EmptyRegionError, match="tissue"):
        encoder.embed(image, box(1500, 0, 2400, 900))


def test_a_region_outside_the_image_raises_an_error(encoder, image):
    with pytest.raises(EmptyRegionError, match="1200 x 900 px"):
        encoder.embed(image, box(5000, 0, 5100, 50))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_nan_polygon_raises_an_error(encoder, image):
    with pytest.raises(InvalidGeometryError, match="finite"):
        encoder.embed(image, Polygon([(0, 0), (float("nan"), 5), (9, 9)]))


def test_arrays_that_are_no_images_raise_an_error(encoder):
    for wrong in (
        np.zeros((50, 50, 3)),
        np.zeros((50, 50, 4), np.uint8),
        np.zeros((0, 5, 3), "u1"),
    ):
        with pytest.raises(ShapeError, match=r"image: expected \(H, W, 3\) uint8"):
            encoder.embed(wrong)


def test_progress_counts_patches_and_can_cancel(encoder, image):
    calls = []
    encoder.embed_image(image, progress=lambda *step: calls.append(step))
    assert calls[-1][0] == calls[-1][1] == len(calls)

    def cancel(done, total, phase):
        raise CancelledError("asked to stop")

    with pytest.raises(CancelledError):
        encoder.embed_image(image, progress=cancel)


def test_a_real_slide_is_embedded_by_region(encoder, tessera_data):
    path = tessera_data / "histology/slides/cmu-1-small-region.svs"
    with open_slide(path) as slide:
        left = encoder.embed_region(slide, box(0, 0, 1000, 1500))
        same = encoder.embed_region(slide, box(40, 40, 1040, 1540))
    assert left.downsample == pytest.approx(1 / 0.499)
    assert np.linalg.norm(left.vector - same.vector) < 0.6
