"""Check of the published network of an encoder."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from torch import nn

from ml.errors import WeightsError
from ml.roi.encoders.classical import ClassicalEncoder
from ml.roi.encoders.combined import CombinedEncoder
from ml.roi.encoders.probe import check_probe, probe_patch, probe_vector
from ml.roi.encoders.published import PublishedEncoder
from ml.roi.encoders.transform import ImageTransform


class Means(nn.Module):
    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor

    def forward(self, pixels):
        first = pixels.mean(dim=(2, 3)) * torch.tensor([1.0, 1.0, self.factor])
        return torch.cat([first, pixels.std(dim=(2, 3))], dim=1)


def published(factor=1.0, **transform):
    made = ImageTransform(28, 28, **transform)
    return PublishedEncoder("hf:x", Means(factor), made, device=torch.device("cpu"))


def test_the_probe_patch_is_reproducible():
    patch = probe_patch()
    assert patch.shape == (224, 224, 3) and patch.std() > 20
    digest = hashlib.sha256(patch.tobytes()).hexdigest()[:16]
    assert digest == "b336507d2ccd6395"


def test_only_published_networks_are_probed():
    assert probe_vector(None) is None and probe_vector(ClassicalEncoder()) is None
    mixed = CombinedEncoder([published(), ClassicalEncoder()])
    assert np.array_equal(probe_vector(mixed), probe_vector(published()))


def test_the_same_network_passes_despite_rounding():
    expected = probe_vector(published())
    check_probe("e.safetensors", published(), expected)
    check_probe("e.safetensors", published(1.01), expected)
    check_probe("e.safetensors", ClassicalEncoder(), None)


@pytest.mark.parametrize(
    "other", [published(2.0), published(mean=(0.7, 0.58, 0.7)), published(std=(0.5, 0.5, 0.5))]
)
def test_other_weights_or_another_transform_raise_an_error(other):
    expected = probe_vector(published())
    with pytest.raises(WeightsError, match="outputs differ"):
        check_probe("e.safetensors", other, expected)


def test_a_file_without_a_probe_vector_raises_an_error():
    with pytest.raises(WeightsError, match="'hf:x'"):
        check_probe("e.safetensors", published(), None)
    with pytest.raises(WeightsError, match="network"):
        check_probe("e.safetensors", ClassicalEncoder(), np.ones(3, np.float32))
