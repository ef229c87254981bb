"""Methods compared on places."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import EmptyRegionError
from ml.evaluation.retrieval.places.methods import (
    WORDS,
    baseline_methods,
    encoder_method,
    region_view,
)
from ml.evaluation.retrieval.places.scenes import PlaceRegion, Scene, square
from ml.keypoints.descriptors.tessera import load
from ml.networks.vlad import Vlad, VladConfig
from ml.roi.keypoints.encoder import KeypointEncoder, KeypointEncoderConfig
from tests.ml.roi.conftest import draw_mucosa


@pytest.fixture(scope="module")
def views():
    config = KeypointEncoderConfig(vlad=VladConfig(words=2, out_dim=8))
    return KeypointEncoder(
        name="views",
        version="1",
        config_hash="",
        config=config,
        network=Vlad(config.vlad),
        descriptor=load(),
    )


@pytest.fixture(scope="module")
def scene(still):
    regions = [PlaceRegion(0, 0, square(np.array([x, 200.0]), 120.0)) for x in (150, 158, 400)]
    return Scene(
        name="s",
        truth="sweep",
        frames=(still,),
        mask=np.ones(still.shape[:2], np.bool_),
        regions=tuple(regions),
        visits=(0,),
        near_gap=1,
        far_gap=2,
    )


def test_baselines_find_a_slightly_moved_place(views, scene):
    other = draw_mucosa(500, 520, seed=3)
    training = [
        views.view_of_image(other, PlaceRegion(0, 0, square(np.array(c), 150.0)).polygon)
        for c in ((120.0, 120.0), (380.0, 120.0), (120.0, 380.0), (380.0, 380.0))
    ]
    methods = baseline_methods(views, training * 2, seed=0)
    assert [method.name for method in methods] == ["HSV histogram", "bag of RootSIFT"]
    for method in methods:
        here, near, far = (method.vector(scene, index) for index in range(3))
        assert np.linalg.norm(here - near) < np.linalg.norm(here - far)
    assert methods[1].vector(scene, 0).shape == (WORDS,)


def test_the_name_of_an_encoder_contains_its_version(views, scene):
    method = encoder_method(views)
    assert method.name == "views 1"
    assert np.allclose(
        method.vector(scene, 0), views.embed(scene.frames[0], scene.regions[0].polygon)
    )


def test_a_region_that_cannot_be_embedded_is_far_from_all(scene):
    class Blind:
        name, version, dim = "blind", "1", 4

        def embed(self, image, polygon):
            raise EmptyRegionError("nothing")

    assert np.isinf(encoder_method(Blind()).vector(scene, 0)).all()


def test_views_have_the_size_of_the_encoder(views, scene):
    view = region_view(views, scene, 2)
    assert view.downsample == pytest.approx(1.0, abs=0.07)
    assert view.inside.sum() == pytest.approx(128**2, rel=0.05)
