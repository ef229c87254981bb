"""Patch encoder from a published network: batches, half precision, reference on a CPU."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from ml.errors import WeightsError
from ml.networks.device import Compute
from ml.networks.vision_transformer import TransformerConfig, VisionTransformer
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.published import PublishedEncoder
from ml.roi.encoders.transform import ImageTransform
from ml.roi.stain.deconvolution import published_stains

CPU = torch.device("cpu")


class Pooled(VisionTransformer):
    def forward(self, pixels):
        return super().forward(pixels)[:, 0]


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    config = TransformerConfig(
        width=64, depth=4, heads=4, patch_px=14, input_px=56, hidden=128, gated=True, registers=4
    )
    network = Pooled(config)
    with torch.no_grad():
        for name, tensor in network.named_parameters():
            if name.endswith("gamma"):
                tensor.fill_(1.0)
    return PublishedEncoder("hf:test", network, ImageTransform(56, 56), device=CPU)


@pytest.fixture
def patches(tissue):
    return [tissue(64, 64, seed=seed) for seed in range(5)]


def test_a_published_encoder_implements_the_protocol_and_ignores_stains(encoder, patches):
    assert isinstance(encoder, PatchEncoder) and encoder.batch == 1
    features = encoder.encode(patches, published_stains(patches[0]))
    assert features.shape == (5, encoder.dim) == (5, 64) and features.dtype == np.float32
    assert np.array_equal(features, encoder.encode(patches, published_stains(patches[3])))


def test_on_a_cpu_a_vector_does_not_depend_on_other_patches(encoder, patches):
    stains = published_stains(patches[0])
    together = encoder.encode(patches, stains)
    for patch, row in zip(patches, together, strict=True):
        assert np.array_equal(encoder.encode([patch], stains)[0], row)


@pytest.mark.parametrize("batch", [2, 64])
def test_batches_equal_single_patches(encoder, patches, batch):
    stains = published_stains(patches[0])
    single = encoder.encode(patches, stains)
    encoder.batch = batch
    assert np.allclose(encoder.encode(patches, stains), single, atol=1e-5)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_stays_within_the_tolerance(encoder, patches, half):
    stains = published_stains(patches[0])
    exact = encoder.encode(patches, stains)
    encoder._compute = Compute(CPU, batched=True, half=half)
    rough = encoder.encode(patches, stains)
    assert rough.dtype == np.float32 and not np.array_equal(rough, exact)
    distance = np.linalg.norm(rough - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert distance.max() < (0.002 if half == torch.float16 else 0.02)


def test_a_cpu_computes_in_full_precision(encoder):
    assert isinstance(encoder._compute.precision(), nullcontext)


def test_a_batch_that_does_not_fit_is_halved(encoder, patches):
    stains = published_stains(patches[0])
    expected = encoder.encode(patches, stains)
    network, sizes = encoder._network, []

    def small(images):
        sizes.append(len(images))
        if len(images) > 2:
            raise torch.OutOfMemoryError
        return network(images)

    encoder._network = small
    encoder._compute = Compute(CPU, batched=True, half=torch.float32)
    encoder.batch = 5
    assert np.allclose(encoder.encode(patches, stains), expected, atol=1e-5)
    assert sizes == [5, 2, 2, 1]


def test_a_network_that_returns_tokens_raises_an_error():
    config = TransformerConfig(width=8, depth=1, heads=2, patch_px=4, input_px=8, hidden=8)
    with pytest.raises(WeightsError, match="vector"):
        PublishedEncoder("hf:x", VisionTransformer(config), ImageTransform(8, 8), device=CPU)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_agrees_with_the_cpu(encoder, patches):
    stains = published_stains(patches[0])
    exact = encoder.encode(patches, stains)
    other = PublishedEncoder(
        "hf:test", encoder._network, encoder.transform, device=torch.device("cuda")
    )
    rough = other.encode(patches, stains)
    assert other.batch > 1
    assert np.linalg.norm(rough - exact) < 0.01 * np.linalg.norm(exact)
