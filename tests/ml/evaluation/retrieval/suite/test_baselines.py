"""The baselines of a suite."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from shapely.geometry import box

from ml.evaluation.retrieval.baselines import visual_words
from ml.evaluation.retrieval.regions import RegionImage
from ml.evaluation.retrieval.suite.baselines import (
    baseline_methods,
    hsv_vector,
    lbp_vector,
    root_sift,
)
from ml.evaluation.retrieval.suite.config import TrainingConfig
from ml.types import no_progress
from tests.ml.evaluation.retrieval.suite.conftest import stained_dots

TRAINING = TrainingConfig(index="tiles/index.csv", where={"use": "train"})


@pytest.fixture(scope="module")
def methods(data, tmp_path_factory):
    cache = tmp_path_factory.mktemp("words")
    return [
        baseline_methods(TRAINING, data, seed=0, cache=cache, progress=no_progress)
        for _ in range(2)
    ]


def test_four_baselines_give_one_vector_per_region(methods):
    region = RegionImage(stained_dots(5), None, None)
    names = [method.name for method in methods[0]]
    assert names == ["HSV histogram", "LBP", "bag of RootSIFT", "local textons"]
    for method in methods[0]:
        vector = method.embed(region)
        assert vector.ndim == 1 and vector.dtype == np.float32 and np.isfinite(vector).all()
        assert method.baseline


def test_cached_words_give_the_same_vectors(methods):
    region = RegionImage(stained_dots(5, seed=4), None, None)
    for first, again in zip(*methods, strict=True):
        assert first.key == again.key
        assert np.array_equal(first.embed(region), again.embed(region))


def test_words_and_key_points_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    rows = rng.random((3000, 128)).astype(np.float32)
    image = np.ascontiguousarray(stained_dots(8, seed=3))
    mask = np.full(image.shape[:2], 255, np.uint8)
    vectors = []
    try:
        for threads in (1, 4):
            cv2.setNumThreads(threads)
            words = visual_words(rows, count=32, seed=0)
            vectors.append((words.tobytes(), root_sift(image, mask, contrast=0.04).tobytes()))
    finally:
        cv2.setNumThreads(-1)
    assert vectors[0] == vectors[1] and len(vectors[0][1])
    assert visual_words(rows, count=32, seed=1).tobytes() != vectors[0][0]


def test_the_key_depends_on_the_seed(data, methods):
    other = baseline_methods(TRAINING, data, seed=1, cache=None, progress=no_progress)
    assert [a.key == b.key for a, b in zip(methods[0], other, strict=True)] == [
        True,
        True,
        False,
        False,
    ]


def test_grey_patterns_do_not_depend_on_stain_strength(methods):
    weak, strong = (
        lbp_vector(RegionImage(stained_dots(5, strength=(s, s)), None, 1.0)) for s in (0.8, 1.2)
    )
    other = lbp_vector(RegionImage(stained_dots(12), None, 1.0))
    assert np.abs(weak - strong).sum() < 0.5 * np.abs(weak - other).sum()


def test_only_pixels_in_the_polygon_count():
    image = stained_dots(5)
    half = image.copy()
    half[:, 112:] = 0
    polygon = box(0, 0, 111, 224)
    first, two = (hsv_vector(RegionImage(x, polygon, 1.0)) for x in (image, half))
    assert np.abs(first - two).max() < 0.05


def test_a_region_without_key_points_has_an_empty_bag(methods):
    blank = RegionImage(np.full((64, 64, 3), 245, np.uint8), None, None)
    assert not methods[0][2].embed(blank).any()
