"""The registry of patch encoders."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.errors import UnknownNameError, WeightsError
from ml.networks.patch_cnn import PatchCnn, PatchCnnConfig
from ml.networks.textons import TextonConfig
from ml.roi.encoders.patch_cnn import PatchCnnEncoder
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.encoders.textons import TextonEncoder, contrast_jets
from ml.roi.stain.deconvolution import published_stains
from ml.training.roi.textons import TextonFitConfig, fit_bank


@pytest.fixture
def cnn():
    torch.manual_seed(0)
    return PatchCnnEncoder(PatchCnn(PatchCnnConfig(widths=(4, 6, 8, 10))))


@pytest.fixture
def textons(tissue):
    patch = tissue(224, 224, seed=9)
    config = TextonConfig(words=8, scales_px=(1.0,))
    jets = contrast_jets(patch, config)
    bank = fit_bank(jets, config, fit=TextonFitConfig(rounds=2), seed=0)
    return TextonEncoder(bank, config)


@pytest.fixture
def patches(tissue):
    return [tissue(224, 224, seed=seed) for seed in range(3)]


@pytest.mark.parametrize(
    "spec",
    ["classical-1", "patch-cnn-2", "local-textons-1", "local-textons-1+classical-1+patch-cnn-2"],
)
def test_every_encoder_implements_the_protocol(spec, cnn, textons, patches):
    encoder = make_patch_encoder(spec, cnn=cnn, textons=textons)
    assert isinstance(encoder, PatchEncoder) and encoder.name == spec
    stains = published_stains(np.concatenate(patches))
    together = encoder.encode(patches, stains)
    assert together.shape == (3, encoder.dim) and together.dtype == np.float32
    assert np.array_equal(encoder.encode(patches[1:2], stains)[0], together[1])


def test_an_unknown_encoder_raises_an_error():
    with pytest.raises(UnknownNameError, match="'inception'"):
        make_patch_encoder("inception")
    for name in ("patch-cnn-2", "local-textons-1"):
        with pytest.raises(WeightsError, match=f"{name}: its weights are missing"):
            make_patch_encoder(name)
