"""Patches go to their encoder one by one, or in batches read ahead."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import CancelledError
from ml.roi.patches import ImagePatches
from ml.roi.stain import fixed_stains
from ml.roi.vectors import patch_vectors


class Means:
    """Its vector is the mean colour; it notes how many patches it was given."""

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
    return patch_vectors(source, corners, 32, fixed_stains(image), encoder, progress)


def test_batches_give_what_single_patches_give(region):
    single, several = Means(1), Means(4)
    expected, found = vectors(region, single), vectors(region, several)
    assert [v is None for v in expected] == [x in (128, 160) for x, _ in region[1]]
    for a, b in zip(expected, found, strict=True):
        assert (a is None and b is None) or np.array_equal(a, b)
    assert several.given == [4, 2, 2] and single.given == [1] * 8


def test_a_blank_batch_is_never_encoded(region):
    image, corners = region
    image[:] = 255
    encoder = Means(4)
    assert vectors((image, corners), encoder) == [None] * 10 and not encoder.given


@pytest.mark.parametrize("batch", [1, 4])
def test_progress_is_told_and_may_stop(region, batch):
    told = []
    vectors(region, Means(batch), lambda *args: told.append(args))
    assert told == [(i, 10, "patches") for i in range(1, 11)]

    def stop(done, total, phase):
        raise CancelledError("stop")

    with pytest.raises(CancelledError):
        vectors(region, Means(batch), stop)
