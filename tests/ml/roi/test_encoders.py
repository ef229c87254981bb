"""Patch encoders: one protocol, whatever is behind it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.errors import UnknownNameError, WeightsError
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig
from ml.networks.textons import TextonConfig
from ml.roi.encoders.hub import HubEncoder, load_hub_encoder, stain_normalised
from ml.roi.encoders.patch_cnn import PatchCnnEncoder, load_patch_cnn, save_patch_cnn
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.encoders.textons import TextonEncoder, local_jets
from ml.roi.stain import fixed_stains
from ml.training.roi.textons import TextonFitConfig, fit_textons


@pytest.fixture
def cnn():
    torch.manual_seed(0)
    return PatchCnnEncoder(PatchCnn(PatchCnnConfig(widths=(4, 6, 8, 10))))


@pytest.fixture
def textons(tissue):
    patch = tissue(224, 224, seed=9)
    config = TextonConfig(words=8, scales_px=(1.0,))
    jets = local_jets(patch, fixed_stains(patch), config)
    return TextonEncoder(fit_textons(jets, config, fit=TextonFitConfig(rounds=2), seed=0))


@pytest.fixture
def patches(tissue):
    return [tissue(224, 224, seed=seed) for seed in range(3)]


@pytest.mark.parametrize(
    "spec", ["classical-1", "patch-cnn", "textons-1", "textons-1+classical-1+patch-cnn"]
)
def test_every_encoder_keeps_the_protocol(spec, cnn, textons, patches):
    encoder = make_patch_encoder(spec, cnn=cnn, textons=textons)
    assert isinstance(encoder, PatchEncoder) and encoder.name == spec
    stains = fixed_stains(np.concatenate(patches))
    together = encoder.encode(patches, stains)
    assert together.shape == (3, encoder.dim) and together.dtype == np.float32
    assert encoder.scale.shape == encoder.alike.shape == (encoder.dim,)
    assert encoder.alike.sum() == (8 if "textons-1" in spec else 0)
    assert np.array_equal(encoder.encode(patches[1:2], stains)[0], together[1])


def test_our_own_network_is_loaded_as_saved_to_half_precision(cnn, patches, tmp_path):
    path = tmp_path / "p.safetensors"
    save_patch_cnn(path, name="mine", version="1", network=cnn.network)
    stains = fixed_stains(patches[0])
    found = load_patch_cnn(path).encode(patches[:1], stains)
    assert np.allclose(found, cnn.encode(patches[:1], stains), atol=1e-2)
    path.write_bytes(path.read_bytes()[:99])
    with pytest.raises(WeightsError, match="not a safetensors file"):
        load_patch_cnn(path)


def test_an_unknown_encoder_is_refused():
    with pytest.raises(UnknownNameError, match="unknown patch encoder 'inception'"):
        make_patch_encoder("inception")
    for name in ("patch-cnn", "textons-1"):
        with pytest.raises(WeightsError, match=f"{name}: its weights are not given"):
            make_patch_encoder(name)


def test_networks_of_the_hub_see_normalised_patches(patches):
    import transformers

    stains = fixed_stains(patches[0])
    resnet = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    vit = transformers.Dinov2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14
    )
    for model, dim in (
        (transformers.ResNetModel(resnet), 16),
        (transformers.Dinov2Model(vit), 16),
    ):
        encoder = HubEncoder("hf:tiny", model)
        assert isinstance(encoder, PatchEncoder) and encoder.dim == dim
        assert encoder.encode(patches, stains).shape == (3, dim)


def test_a_saved_network_is_loaded_by_its_path_and_nothing_else_is(tmp_path):
    import transformers

    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    transformers.ResNetModel(config).save_pretrained(tmp_path / "net")
    assert make_patch_encoder(f"resnet50:{tmp_path / 'net'}").dim == 16
    (tmp_path / "empty").mkdir()
    with pytest.raises(WeightsError, match="no image network to be had"):
        load_hub_encoder("hf:x", str(tmp_path / "empty"))


def test_a_stronger_stain_is_normalised_away(patches):
    density = -np.log((patches[0].astype(np.float64) + 1) / 246)
    stronger = np.clip(246 * np.exp(-1.2 * density) - 1, 0, 255).astype(np.uint8)
    first = stain_normalised(patches[0], fixed_stains(patches[0]))
    second = stain_normalised(stronger, fixed_stains(stronger))
    before = np.abs(patches[0].astype(float) - stronger).mean() / 255
    assert np.abs(first - second).mean() < before / 2
