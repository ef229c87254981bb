"""Vectors of patches, encoded one by one or in batches."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import CancelledError
from ml.roi.patches import ImagePatches
from ml.roi.stain.deconvolution import published_stains
from ml.roi.vectors import patch_vectors


class Means:
    """Encoder by the mean colour, which records the sizes of its batches."""

    name, dim, uses_stains = "means", 3, True

    def __init__(self, batch):
        self.batch, self.given = batch, []

    def encode(self, patches, stains):
        self.given.append(len(patches))
        return np.stack([patch.mean(axis=(0, 1)) for patch in patches]).astype(np.float32)


@pytest.fixture
def region(tissue):
    image = tissue(64, 320, seed=1)
    image[:, 128:192] = 255
    return image, [(x, 0) for x in range(0, 320, 32)]


def vectors(region, encoder, progress=lambda *_: None):
    image, corners = region
    source = ImagePatches(image, downsample=1.0)
    return patch_vectors(source, corners, 32, published_stains(image), encoder, progress)


def test_batches_equal_single_patches(region):
    single, several = Means(1), Means(4)
    expected, result = vectors(region, single), vectors(region, several)
    assert [v is None for v in expected] == [x in (128, 160) for x, _ in region[1]]
    for a, b in zip(expected, result, strict=True):
        assert (a is None and b is None) or np.array_equal(a, b)
    assert several.given == [4, 2, 2] and single.given == [1] * 8


def test_a_blank_batch_is_not_encoded(region):
    image, corners = region
    image[:] = 255
    encoder = Means(4)
    assert vectors((image, corners), encoder) == [None] * 10 and not encoder.given


@pytest.mark.parametrize("batch", [1, 4])
def test_progress_is_reported_and_can_cancel(region, batch):
    calls = []
    vectors(region, Means(batch), lambda *args: calls.append(args))
    assert calls == [(i, 10, "patches") for i in range(1, 11)]

    def stop(done, total, phase):
        raise CancelledError("stop")

    with pytest.raises(CancelledError):
        vectors(region, Means(batch), stop)
