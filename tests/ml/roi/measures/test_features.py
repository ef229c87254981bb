"""Classical patch features: shape, finiteness and invariances."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import ShapeError
from ml.roi.measures.features import FEATURE_DIM, patch_features, tissue_share
from ml.roi.measures.structure import CONCENTRATION_DIM
from ml.roi.stain.deconvolution import optical_density, published_stains


def features(image):
    return patch_features(image, published_stains(image))


def test_features_are_finite_for_tissue_and_blank_patches(tissue):
    flat = np.full((224, 224, 3), 255, np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    for patch in (tissue(224, 224), flat, flat * 0, noise):
        vector = features(patch)
        assert vector.shape == (FEATURE_DIM,) and vector.dtype == np.float32
        assert np.isfinite(vector).all()


def test_quarter_turns_and_mirroring_change_little(tissue):
    patch = tissue(224, 224)
    other = features(tissue(224, 224, nuclei_per_mpx=4000, radius_px=8))
    far = np.abs(features(patch) - other).mean()
    for same in (np.rot90(patch), patch[:, ::-1], patch[::-1]):
        near = np.abs(features(patch) - features(np.ascontiguousarray(same))).mean()
        assert near < 0.1 * far


def test_a_stronger_stain_changes_less_than_another_tissue(tissue):
    patch = tissue(224, 224)
    stronger = np.clip(246 * 10 ** (-1.2 * optical_density(patch)) - 1, 0, 255).astype(np.uint8)
    other = features(tissue(224, 224, nuclei_per_mpx=4000, radius_px=8))
    near = np.abs(features(patch) - features(stronger)).mean()
    assert near < 0.5 * np.abs(features(patch) - other).mean()


def test_more_nuclei_raise_the_count_feature(tissue):
    count = CONCENTRATION_DIM  # index of the first nucleus feature
    few, many = (features(tissue(224, 224, nuclei_per_mpx=n))[count] for n in (600, 2000))
    assert many > few + 0.3


def test_blank_background_has_no_tissue(tissue):
    assert tissue_share(np.full((224, 224, 3), 244, np.uint8)) == 0
    assert tissue_share(tissue(224, 224)) > 0.9


def test_another_size_raises_an_error_with_both_sizes():
    image = np.zeros((100, 224, 3), np.uint8)
    with pytest.raises(ShapeError, match=r"expected \(224, 224, 3\) uint8, got \(100, 224, 3\)"):
        patch_features(image, published_stains(image))
