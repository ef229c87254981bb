"""Foundation models by recipe, with random weights."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ml.errors import UnknownNameError, WeightsError
from ml.networks.vision_transformer import VisionTransformer
from ml.roi.encoders.foundation import (
    FOLDER_VARIABLE,
    foundation_encoder,
    foundation_network,
    load_foundation,
    weights_file,
)
from ml.roi.encoders.pooling import POOLS
from ml.roi.encoders.recipes import RECIPES, AttentionPool, recipe_of
from ml.roi.stain.deconvolution import published_stains

PARAMETERS_M = {
    "uni2-h": 681,
    "virchow2": 631,
    "h-optimus-0": 1135,
    "h-optimus-1": 1135,
    "gigapath": 1135,
    "conch": 86,
}
"""Published number of parameters in millions; of CONCH without pooling."""


def shallow(name):
    """The recipe with a single layer."""
    recipe = recipe_of(name)
    return dataclasses.replace(
        recipe, architecture=dataclasses.replace(recipe.architecture, depth=1)
    )


def published(recipe, folder):
    """A file as published: original tensor names, and further tensors than the image tower."""
    torch.manual_seed(0)
    network = foundation_network(recipe)
    state = {recipe.prefix + key: value for key, value in network.state_dict().items()}
    if recipe.prefix:
        state |= {"text.cls_emb": torch.zeros(4), "visual.proj_contrast": torch.zeros(4, 4)}
    path = folder / recipe.files[0]
    save_file(state, path) if path.suffix == ".safetensors" else torch.save(state, path)
    return path, network.eval()


ARCHITECTURES = ("uni2-h", "virchow2", "h-optimus-0", "gigapath", "conch")


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_published_file_gives_vectors_of_the_length_of_the_recipe(name, tmp_path, tissue):
    recipe = shallow(name)
    path, network = published(recipe, tmp_path)
    encoder = foundation_encoder(recipe, path, device="cpu")
    assert encoder.name == f"hub:{name}" and encoder.dim == recipe.dim
    patch = tissue(recipe.tile_px, recipe.tile_px, seed=1)
    features = encoder.encode([patch], published_stains(patch))
    with torch.inference_mode():
        expected = network(torch.from_numpy(recipe.transform.apply(patch)[None])).numpy()
    assert np.array_equal(features, expected)


def test_virchow2_concatenates_class_token_and_mean_of_the_patches(tmp_path):
    recipe = shallow("virchow2")
    network = foundation_network(recipe).eval()
    tokens = []
    network.norm.register_forward_hook(lambda *call: tokens.append(call[2][0].detach().numpy()))
    with torch.inference_mode():
        vector = network(torch.randn(1, 3, 224, 224))[0].numpy()
    assert tokens[0].shape == (261, 1280)
    assert np.allclose(vector, [*tokens[0][0], *tokens[0][5:].mean(axis=0)], atol=1e-5)


def test_phikon_is_loaded_by_transformers(tmp_path, tissue):
    from transformers import Dinov2Config, Dinov2Model

    recipe = shallow("phikon-v2")
    sizes = recipe.architecture
    torch.manual_seed(0)
    model = Dinov2Model(
        Dinov2Config(
            hidden_size=sizes.width,
            num_hidden_layers=sizes.depth,
            num_attention_heads=sizes.heads,
            mlp_ratio=sizes.hidden // sizes.width,
            image_size=sizes.input_px,
            patch_size=sizes.patch_px,
        )
    ).eval()
    model.save_pretrained(tmp_path)
    encoder = foundation_encoder(recipe, tmp_path / recipe.files[0], device="cpu")
    patch = tissue(224, 224, seed=1)
    pixels = torch.from_numpy(recipe.transform.apply(patch)[None])
    with torch.inference_mode():
        expected = model(pixel_values=pixels).last_hidden_state[:, 0].numpy()
    assert np.array_equal(encoder.encode([patch], published_stains(patch)), expected)


@pytest.mark.parametrize("name", sorted(PARAMETERS_M))
def test_the_architecture_has_the_published_number_of_parameters(name):
    with torch.device("meta"):
        network = VisionTransformer(recipe_of(name).architecture)
    millions = sum(tensor.numel() for tensor in network.parameters()) / 1e6
    assert millions == pytest.approx(PARAMETERS_M[name], rel=0.01)


@pytest.mark.slow
def test_a_full_size_model_runs(tmp_path):
    recipe = recipe_of("conch")
    path, _ = published(recipe, tmp_path)
    encoder = foundation_encoder(recipe, path, device="cpu")
    patch = np.full((512, 512, 3), 200, np.uint8)
    assert encoder.encode([patch], published_stains(patch)).shape == (1, 512)


def test_recipes_have_a_licence_and_are_consistent():
    for name, recipe in RECIPES.items():
        sizes, pool = recipe.architecture, recipe.pool
        assert name == recipe.name and recipe.licence and "/" in recipe.repository
        assert recipe.transform.crop_px == sizes.input_px
        assert sizes.input_px % sizes.patch_px == 0 and sizes.width % sizes.heads == 0
        assert 0.25 <= recipe.mpp <= 1 and recipe.tile_px >= recipe.transform.crop_px
        if isinstance(pool, AttentionPool):
            assert recipe.dim == pool.dim
        else:
            assert pool in POOLS
            assert recipe.dim == sizes.width * (2 if pool == "cls_mean" else 1)
        assert getattr(torch, recipe.half).is_floating_point


def test_missing_weights_raise_an_error_with_instructions(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    expected = (
        r"uni2-h: its weights are not here; ask for access at"
        r" https://huggingface.co/MahmoodLab/UNI2-h, then `hf download MahmoodLab/UNI2-h"
    )
    with pytest.raises(WeightsError, match=expected):
        load_foundation("uni2-h")
    with pytest.raises(WeightsError, match="phikon-v2"):
        load_foundation("phikon-v2")


def test_the_folder_of_the_server_has_priority(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / "gigapath").mkdir()
    file = tmp_path / "gigapath" / "pytorch_model.bin"
    file.write_bytes(b"x")
    assert weights_file(recipe_of("gigapath")) == file
    with pytest.raises(WeightsError, match=r"hub:gigapath: pytorch_model\.bin"):
        load_foundation("gigapath", "cpu")


def test_the_cache_of_the_hub_is_searched(tmp_path, monkeypatch):
    import huggingface_hub

    def cached(repository, file):
        return str(tmp_path / file) if file == "pytorch_model.bin" else None

    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", cached)
    assert weights_file(recipe_of("uni2-h")) == tmp_path / "pytorch_model.bin"


@pytest.mark.parametrize("change", ["missing", "other size", "not finite"])
def test_tensors_of_another_architecture_raise_an_error(change, tmp_path):
    recipe = shallow("conch")
    path, _ = published(recipe, tmp_path)
    state = torch.load(path, weights_only=True)
    key = "visual.trunk.pos_embed"
    if change == "missing":
        del state[key]
    else:
        state[key] = state[key][:, :197] if change == "other size" else state[key] * float("nan")
    torch.save(state, path)
    with pytest.raises(WeightsError, match=r"'trunk\.pos_embed': (expected|holds NaN)"):
        foundation_encoder(recipe, path, device="cpu")


def test_phikon_without_its_configuration_raises_an_error(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "nothing"}))
    with pytest.raises(WeightsError, match="hub:phikon-v2"):
        foundation_encoder(recipe_of("phikon-v2"), tmp_path / "model.safetensors", device="cpu")


def test_an_unknown_model_raises_an_error():
    with pytest.raises(UnknownNameError, match="'uni3'"):
        load_foundation("uni3")
