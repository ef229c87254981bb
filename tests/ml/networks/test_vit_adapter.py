"""The adapted vision transformer: shapes, a slow version of its layer, DINOv2 models."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from ml.errors import WeightsError
from ml.networks.vit_adapter import (
    SmallVitConfig,
    TransformerBlock,
    TransformersBackbone,
    VitConfig,
    VitMatcher,
    make_backbone,
)

TINY = VitConfig(small=SmallVitConfig(stem=(4, 8), width=16, depth=1, heads=2), heads=2)


def dinov2(folder, **sizes):
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    config = Dinov2Config(
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        mlp_ratio=2,
        image_size=56,
        patch_size=14,
        **sizes,
    )
    Dinov2Model(config).save_pretrained(folder)
    return str(folder)


def slow_block(block, x):
    """Slow layer: a head and a token at a time."""
    batch, count, width = x.shape
    size = width // block.heads
    out = torch.zeros_like(x)
    for b in range(batch):
        query, key, value = block.qkv(block.norm_1(x[b])).split(width, dim=1)
        mixed = torch.zeros(count, width)
        for head in range(block.heads):
            part = slice(head * size, (head + 1) * size)
            for i in range(count):
                weights = torch.exp(key[:, part] @ query[i, part] / math.sqrt(size))
                mixed[i, part] = (weights[:, None] * value[:, part]).sum(0) / weights.sum()
        y = x[b] + block.out(mixed)
        out[b] = y + block.mlp(block.norm_2(y))
    return out


def test_the_layer_equals_slow_attention():
    torch.manual_seed(0)
    block, x = TransformerBlock(8, 2, 2.0), torch.randn(2, 5, 8)
    with torch.no_grad():
        assert torch.allclose(block(x), slow_block(block, x), atol=1e-5)


@pytest.mark.parametrize("size", [(16, 16), (16, 40), (64, 24)])
def test_the_map_has_a_unit_descriptor_for_each_patch_at_any_aspect(size):
    torch.manual_seed(0)
    network = VitMatcher(TINY).eval()
    with torch.no_grad():
        features = network(torch.rand(2, 3, *size))
    assert features.shape == (2, 16, size[0] // 4, size[1] // 4)
    assert torch.allclose(features.norm(dim=1), torch.ones(()), atol=1e-5)


def test_without_layers_the_map_equals_that_of_the_backbone():
    torch.manual_seed(0)
    network = VitMatcher(VitConfig(small=TINY.small, layers=0, heads=2)).eval()
    pixels = torch.rand(1, 3, 16, 16)
    with torch.no_grad():
        tokens = nn.functional.normalize(network.semantic(pixels), dim=2)
        assert torch.equal(network(pixels).flatten(2).transpose(1, 2), tokens)


def test_a_saved_dinov2_is_loaded_and_gives_a_token_for_each_patch(tmp_path):
    network = VitMatcher(VitConfig(backbone=dinov2(tmp_path), heads=2)).eval()
    assert (network.width, network.patch_px) == (24, 14)
    with torch.no_grad():
        assert network(torch.rand(1, 3, 28, 70)).shape == (1, 24, 2, 5)


def test_tokens_of_dinov2_exclude_the_class_token(tmp_path):
    backbone = make_backbone(VitConfig(backbone=dinov2(tmp_path)))
    pixels = torch.rand(1, 3, 56, 42)
    with torch.no_grad():
        hidden_state = backbone.model(pixel_values=pixels).last_hidden_state
        assert torch.equal(backbone(pixels), hidden_state[:, 1:])


def test_register_tokens_are_excluded():
    from transformers import Dinov2WithRegistersConfig, Dinov2WithRegistersModel

    config = Dinov2WithRegistersConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        mlp_ratio=2,
        image_size=28,
        patch_size=14,
        num_register_tokens=3,
    )
    backbone = TransformersBackbone(Dinov2WithRegistersModel(config).eval())
    with torch.no_grad():
        assert backbone(torch.rand(1, 3, 28, 42)).shape == (1, 6, 8)


def test_a_missing_backbone_raises_an_error_without_the_folder(tmp_path):
    with pytest.raises(WeightsError, match="'nothing'") as caught:
        VitMatcher(VitConfig(backbone=str(tmp_path / "nothing")))
    assert str(tmp_path) not in str(caught.value)


def test_a_model_without_patches_raises_an_error(tmp_path):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        vocab_size=10,
    )
    BertModel(config).save_pretrained(tmp_path)
    with pytest.raises(WeightsError, match="BertModel"):
        make_backbone(VitConfig(backbone=str(tmp_path)))


def test_heads_that_do_not_divide_the_width_raise_an_error():
    with pytest.raises(WeightsError, match=r"16.*3"):
        VitMatcher(VitConfig(small=TINY.small, heads=3))
