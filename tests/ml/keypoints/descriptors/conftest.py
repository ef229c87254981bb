"""Small vision transformers: ours, and of the published architectures."""

from __future__ import annotations

import json

import pytest
import torch

from ml.keypoints.descriptors.vit import VitDescriptor
from ml.networks.vit_adapter import SmallVitConfig, VitConfig, VitMatcher

TINY = VitConfig(
    small=SmallVitConfig(stem=(8, 16), width=16, depth=1, heads=2), heads=2, max_tokens=400
)

PUBLISHED = {
    "attention_probs_dropout_prob": 0.0,
    "drop_path_rate": 0.0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "image_size": 518,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-06,
    "layerscale_value": 1.0,
    "mlp_ratio": 4,
    "num_channels": 3,
    "patch_size": 14,
    "qkv_bias": True,
    "num_hidden_layers": 12,
    "num_attention_heads": 2,
    "hidden_size": 24,
}
"""config.json of facebook/dinov2-base as published, but 24 wide with 2 heads, not 768 with 12."""

KINDS = {
    "base": {"model_type": "dinov2", "use_swiglu_ffn": False},
    "giant": {"model_type": "dinov2", "use_swiglu_ffn": True},
    "registers": {
        "model_type": "dinov2_with_registers",
        "use_swiglu_ffn": False,
        "num_register_tokens": 4,
    },
}
"""Differences of the published variants: gated layers of giant, four register tokens."""


@pytest.fixture(scope="module")
def tiny():
    torch.manual_seed(0)
    return VitDescriptor("vit", VitMatcher(TINY))


@pytest.fixture(scope="module")
def dinov2(tmp_path_factory):
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("dinov2")
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2}
    Dinov2Model(Dinov2Config(image_size=56, patch_size=14, **sizes)).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module", params=sorted(KINDS))
def published(request, tmp_path_factory):
    """A folder as on the hub, with random weights."""
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("published")
    (folder / "config.json").write_text(json.dumps(PUBLISHED | KINDS[request.param]))
    AutoModel.from_config(AutoConfig.from_pretrained(folder)).save_pretrained(folder)
    assert (folder / "model.safetensors").is_file()
    return str(folder)
