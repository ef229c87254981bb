from __future__ import annotations

import numpy as np

from ml.roi.encoders.colour import ColourEncoder, colour_histogram
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.stain import fixed_stains


def test_white_is_one_bin_without_saturation_and_of_the_highest_value():
    histogram = colour_histogram(np.full((32, 32, 3), 255, np.uint8))
    assert np.flatnonzero(histogram).tolist() == [7]
    assert histogram[7] == 1


def test_half_black_half_white_is_two_bins_of_equal_share():
    patch = np.zeros((32, 32, 3), np.uint8)
    patch[:, 16:] = 255
    np.testing.assert_allclose(colour_histogram(patch)[[0, 7]], np.sqrt([0.5, 0.5]))


def test_where_a_colour_stands_in_the_patch_does_not_matter():
    patch = np.random.default_rng(0).integers(0, 256, (33, 33, 3), dtype=np.uint8)
    np.testing.assert_array_equal(colour_histogram(patch), colour_histogram(patch[::-1, ::-1]))


def test_it_is_a_patch_encoder_by_name():
    encoder = make_patch_encoder("colour-1")
    assert isinstance(encoder, ColourEncoder) and isinstance(encoder, PatchEncoder)
    patch = np.full((96, 96, 3), 90, np.uint8)
    assert encoder.encode([patch, patch], fixed_stains(patch.reshape(-1, 3))).shape == (2, 1024)
