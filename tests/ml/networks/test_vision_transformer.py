"""The transformer of foundation models compared with a slow one, and with timm if installed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from ml.networks.vision_transformer import PooledTransformer, TransformerConfig, VisionTransformer

SMALL = TransformerConfig(width=8, depth=2, heads=2, patch_px=4, input_px=12, hidden=12)
VARIANTS = {
    "plain": dataclasses.replace(SMALL, layer_scale=False),
    "scaled": SMALL,
    "gated": dataclasses.replace(SMALL, gated=True),
    "registers with positions": dataclasses.replace(SMALL, registers=3),
    "registers without": dataclasses.replace(SMALL, registers=3, prefix_positions=False),
}


def randomised(network):
    """Randomise all tensors, as the initial layer scale would hide the effect of a layer."""
    torch.manual_seed(0)
    with torch.no_grad():
        for tensor in network.parameters():
            tensor.copy_(torch.randn_like(tensor))
    return network.eval()


def layer_norm(x, weight, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def slow(config, state, image):
    """Slow transformer: a token and a head at a time."""
    w = {key: value.numpy().astype(np.float64) for key, value in state.items()}
    p, n = config.patch_px, config.input_px // config.patch_px
    kernel = w["patch_embed.proj.weight"].reshape(config.width, -1)
    patches = [
        kernel @ image[:, i * p : i * p + p, j * p : j * p + p].ravel() + w["patch_embed.proj.bias"]
        for i in range(n)
        for j in range(n)
    ]
    prefix = [w["cls_token"][0, 0], *(w["reg_token"][0] if config.registers else [])]
    positions = w["pos_embed"][0]
    if config.prefix_positions:
        x = np.array([*prefix, *patches]) + positions
    else:
        x = np.array([*prefix, *(np.array(patches) + positions)])
    for i in range(config.depth):
        b = {key.removeprefix(f"blocks.{i}."): v for key, v in w.items()}
        scales = [b.get(f"ls{k}.gamma", 1.0) for k in (1, 2)]
        x = x + scales[0] * slow_attention(
            config, b, layer_norm(x, b["norm1.weight"], b["norm1.bias"], 1e-6)
        )
        hidden = layer_norm(x, b["norm2.weight"], b["norm2.bias"], 1e-6) @ b["mlp.fc1.weight"].T
        hidden = hidden + b["mlp.fc1.bias"]
        if config.gated:
            gate, value = hidden[:, : config.hidden // 2], hidden[:, config.hidden // 2 :]
            hidden = gate / (1 + np.exp(-gate)) * value
        else:
            hidden = gelu(hidden)
        x = x + scales[1] * (hidden @ b["mlp.fc2.weight"].T + b["mlp.fc2.bias"])
    return layer_norm(x, w["norm.weight"], w["norm.bias"], 1e-6)


def slow_attention(config, b, x):
    query, key, value = np.split(x @ b["attn.qkv.weight"].T + b["attn.qkv.bias"], 3, axis=1)
    size = config.width // config.heads
    out = np.zeros_like(x)
    for head in range(config.heads):
        part = slice(head * size, (head + 1) * size)
        for i in range(len(x)):
            weights = softmax(key[:, part] @ query[i, part] / math.sqrt(size))
            out[i, part] = weights @ value[:, part]
    return out @ b["attn.proj.weight"].T + b["attn.proj.bias"]


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_tokens_equal_those_of_a_slow_transformer(name):
    config = VARIANTS[name]
    network = randomised(VisionTransformer(config))
    image = torch.randn(1, 3, 12, 12)
    with torch.inference_mode():
        array = network(image)[0].numpy()
    expected = slow(config, network.state_dict(), image[0].numpy())
    assert array.shape == (config.prefix + config.patches, config.width)
    assert np.allclose(array, expected, atol=2e-4)


def test_attention_pooling_equals_a_query_over_all_tokens():
    network = randomised(PooledTransformer(VARIANTS["plain"], out_width=6, heads=2))
    image = torch.randn(2, 3, 12, 12)
    with torch.inference_mode():
        tokens, result = network.trunk(image).numpy(), network(image).numpy()
    w = {key: value.numpy().astype(np.float64) for key, value in network.state_dict().items()}
    at = {k.removeprefix("attn_pool_contrast."): v for k, v in w.items()}
    q_bias, k_bias, v_bias = np.split(at["attn.in_proj_bias"], 3)
    query = layer_norm(at["query"], at["ln_q.weight"], at["ln_q.bias"], 1e-5)
    query = query @ at["attn.q_proj_weight"].T + q_bias
    for row, vector in zip(tokens, result, strict=True):
        keys = layer_norm(row, at["ln_k.weight"], at["ln_k.bias"], 1e-5)
        values = keys @ at["attn.v_proj_weight"].T + v_bias
        keys = keys @ at["attn.k_proj_weight"].T + k_bias
        heads = [slice(0, 3), slice(3, 6)]
        mixed = [softmax(keys[:, h] @ query[0, h] / math.sqrt(3)) @ values[:, h] for h in heads]
        out = np.concatenate(mixed) @ at["attn.out_proj.weight"].T + at["attn.out_proj.bias"]
        expected = layer_norm(out, w["ln_contrast.weight"], w["ln_contrast.bias"], 1e-5)
        assert np.allclose(vector, expected, atol=2e-4)


TIMM = {
    "uni2-h": (
        "vit_giant_patch14_224",
        {"patch_size": 14, "num_heads": 24, "embed_dim": 1536, "no_embed_class": True}
        | {"reg_tokens": 8, "mlp_ratio": 2.66667 * 2, "init_values": 1e-5, "gated": True},
    ),
    "virchow2": (
        "vit_huge_patch14_224",
        {"reg_tokens": 4, "mlp_ratio": 5.3375, "init_values": 1e-5, "gated": True},
    ),
    "h-optimus-0": ("vit_giant_patch14_reg4_dinov2", {"init_values": 1e-5}),
    "gigapath": (
        "vit_giant_patch14_dinov2",
        {"patch_size": 16, "embed_dim": 1536, "num_heads": 24, "mlp_ratio": 5.33334},
    ),
    "conch": ("vit_base_patch16_224", {}),
}
"""Arguments of timm for the published models, by their authors or Trident."""


@pytest.mark.parametrize("name", sorted(TIMM))
def test_the_published_architectures_equal_those_of_timm(name):
    timm = pytest.importorskip("timm")
    from ml.roi.encoders.recipes import RECIPES

    config = dataclasses.replace(RECIPES[name].architecture, depth=2)
    model, arguments = TIMM[name]
    arguments = dict(arguments)
    if arguments.pop("gated", False):
        arguments |= {"mlp_layer": timm.layers.SwiGLUPacked, "act_layer": torch.nn.SiLU}
    size = config.input_px
    theirs = randomised(
        timm.create_model(
            model, pretrained=False, num_classes=0, img_size=size, depth=2, **arguments
        )
    )
    ours = VisionTransformer(config).eval()
    ours.load_state_dict(theirs.state_dict(), strict=True)
    pixels = torch.randn(1, 3, size, size)
    with torch.inference_mode():
        assert torch.allclose(ours(pixels), theirs.forward_features(pixels), atol=1e-4)
