"""Networks of transformers and timm: preprocessing and pooling."""

from __future__ import annotations

import importlib.util
import json
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from ml.errors import MissingDependencyError, UnknownNameError, WeightsError
from ml.roi.encoders.hub import load_hub_encoder
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.stain.deconvolution import published_stains

MEAN, STD = [0.7, 0.58, 0.7], [0.21, 0.23, 0.18]
PROCESSOR = {
    "image_processor_type": "BitImageProcessor",
    "size": {"shortest_edge": 32},
    "crop_size": {"height": 28, "width": 28},
    "do_center_crop": True,
    "resample": 3,
    "image_mean": MEAN,
    "image_std": STD,
}
TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


def configurations():
    import transformers as t

    vit = TINY | {"image_size": 28, "patch_size": 14}
    return {
        "dinov2": t.Dinov2Config(**vit, use_swiglu_ffn=True),
        "registers": t.Dinov2WithRegistersConfig(**vit, num_register_tokens=4),
        "vit": t.ViTConfig(**vit, intermediate_size=32),
        "convnext": t.ConvNextConfig(num_stages=3, hidden_sizes=[4, 8, 12], depths=[1, 1, 1]),
        "resnet": t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
    }


@pytest.fixture(params=["dinov2", "registers", "vit", "convnext", "resnet"])
def folder(request, tmp_path):
    """A folder as on the hub, and its model."""
    from transformers import AutoModel

    torch.manual_seed(0)
    model = AutoModel.from_config(configurations()[request.param]).eval()
    model.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    return tmp_path, model, request.param


def by_hand(model, kind, patch, pool):
    """Expected vector by Pillow, NumPy and the model."""
    image = np.asarray(Image.fromarray(patch).resize((32, 32), Image.Resampling.BICUBIC))
    image = (image[2:30, 2:30] / 255.0 - MEAN) / STD
    pixels = torch.from_numpy(image.transpose(2, 0, 1)[None].astype(np.float32))
    with torch.inference_mode():
        answer = model(pixel_values=pixels)
    if kind in ("convnext", "resnet"):
        return answer.pooler_output.flatten().numpy()
    tokens = answer.last_hidden_state[0].numpy()
    first = 5 if kind == "registers" else 1
    means = tokens[first:].mean(axis=0)
    return {"cls": tokens[0], "mean": means, "cls_mean": np.concatenate([tokens[0], means])}[pool]


@pytest.mark.parametrize("pool", ["", "cls", "mean", "cls_mean"])
def test_a_network_gets_the_published_preprocessing_and_pooling(folder, tissue, pool):
    path, model, kind = folder
    if pool and kind in ("convnext", "resnet"):
        pytest.skip("no tokens")
    encoder = load_hub_encoder(f"hf:{path}" + (f"#{pool}" if pool else ""), "cpu")
    patch = tissue(50, 50, seed=1)
    features = encoder.encode([patch], published_stains(patch))[0]
    assert np.allclose(features, by_hand(model, kind, patch, pool or "cls"), atol=1e-4)


def test_the_registry_supports_the_prefixes(tmp_path, tissue):
    from transformers import AutoModel

    AutoModel.from_config(configurations()["dinov2"]).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    encoder = make_patch_encoder(f"hf:{tmp_path}#cls_mean+classical-1")
    assert encoder.dim == 32 + 273
    patch = tissue(224, 224, seed=1)
    assert encoder.encode([patch], published_stains(patch)).shape == (1, encoder.dim)


def test_a_network_without_preprocessing_raises_an_error(tmp_path):
    from transformers import AutoModel

    AutoModel.from_config(configurations()["dinov2"]).save_pretrained(tmp_path)
    with pytest.raises(WeightsError, match=r"preprocessor_config\.json"):
        load_hub_encoder(f"hf:{tmp_path}", "cpu")


def test_a_missing_network_raises_an_error_with_instructions(tmp_path):
    for source in (str(tmp_path / "empty"), "nobody/nothing"):
        with pytest.raises(WeightsError, match="hf download"):
            load_hub_encoder(f"hf:{source}", "cpu")


def test_a_text_network_raises_an_error(tmp_path):
    import transformers as t

    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    t.BertModel(t.BertConfig(**small, intermediate_size=8, vocab_size=9)).save_pretrained(tmp_path)
    with pytest.raises(WeightsError, match="BertModel"):
        load_hub_encoder(f"hf:{tmp_path}", "cpu")


def test_an_unknown_pooling_raises_an_error(tmp_path):
    with pytest.raises(UnknownNameError, match="'max'"):
        load_hub_encoder(f"hf:{tmp_path}#max", "cpu")


def test_networks_without_a_class_token_support_only_the_mean(tmp_path):
    import transformers as t

    config = t.SwinConfig(
        image_size=28, patch_size=2, embed_dim=4, depths=[1, 1], num_heads=[1, 2], window_size=7
    )
    t.SwinModel(config).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    assert load_hub_encoder(f"hf:{tmp_path}", "cpu").dim == 8
    with pytest.raises(WeightsError, match=r"SwinModel .*#mean"):
        load_hub_encoder(f"hf:{tmp_path}#cls", "cpu")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("timm:resnet10t", r"'timm', which is not installed: pip install 'tessera\[timm\]'"),
        ("hf:x", r"'transformers', which is not installed: pip install 'tessera\[hub\]'"),
    ],
)
def test_a_missing_library_raises_an_error_with_the_extra(monkeypatch, spec, message):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=message):
        load_hub_encoder(spec, "cpu")


def test_an_incompatible_timm_raises_an_error(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(WeightsError, match="torchvision"):
        load_hub_encoder("timm:resnet10t", "cpu")


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "convnext_atto"])
def test_timm_models_are_pooled_as_configured(monkeypatch, tissue, name):
    timm = pytest.importorskip("timm")
    model = timm.create_model(name, pretrained=False, num_classes=0).eval()
    monkeypatch.setattr(timm, "create_model", lambda *_, **__: model)
    encoder = load_hub_encoder(f"timm:{name}", "cpu")
    patch = tissue(224, 224, seed=1)
    pixels = torch.from_numpy(encoder.transform.apply(patch)[None])
    with torch.inference_mode():
        expected = model(pixels)[0].numpy()
    assert np.allclose(encoder.encode([patch], published_stains(patch))[0], expected, atol=1e-5)
