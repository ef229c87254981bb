"""Encoders by the mean of the vectors of patches."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ml.errors import WeightsError
from ml.roi import load_encoder
from ml.roi.encoders import foundation, recipes
from ml.roi.encoders.foundation import FOLDER_VARIABLE, foundation_network, load_foundation
from ml.roi.mean_encoder import save_mean_encoder

SMALL = dataclasses.replace(
    recipes.VIRCHOW2,
    name="small",
    architecture=dataclasses.replace(
        recipes.VIRCHOW2.architecture, width=16, heads=2, depth=1, hidden=32
    ),
    dim=32,
)


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A folder of weights with one model, loaded again in each test."""
    monkeypatch.setitem(recipes.RECIPES, "small", SMALL)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "models"))
    (tmp_path / "models" / "small").mkdir(parents=True)
    write(tmp_path, seed=0)
    yield tmp_path
    load_foundation.cache_clear()
    load_encoder.cache_clear()


def write(folder, *, seed):
    torch.manual_seed(seed)
    foundation.load_foundation.cache_clear()
    state = foundation_network(SMALL).state_dict()
    save_file(state, folder / "models" / "small" / "model.safetensors")


def test_the_vector_is_the_mean_of_the_patches(models, tissue):
    path = models / "e.safetensors"
    config = save_mean_encoder(path, "hub:small", name="mine")
    assert (config.sampling.patch_px, config.sampling.target_mpp) == (224, 0.5)
    encoder = load_encoder(str(path))
    assert (encoder.name, encoder.version, encoder.dim) == ("mine", "1", 32)
    image = tissue(500, 500, seed=3)
    embedded = encoder.embed_image(image, mpp=0.5)
    assert np.linalg.norm(embedded.vector) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(encoder.embed(image, mpp=0.5), embedded.vector)
    boxes = embedded.patch_boxes_l0.astype(int)
    patches = [image[top:bottom, left:right] for left, top, right, bottom in boxes]
    rows = load_foundation("small").encode(patches, None)
    mean = rows.mean(axis=0)
    assert np.allclose(embedded.vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_other_weights_raise_an_error(models):
    path = models / "e.safetensors"
    save_mean_encoder(path, "hub:small", name="mine")
    write(models, seed=1)
    with pytest.raises(WeightsError, match=r"e\.safetensors: .*'hub:small'"):
        load_encoder(str(path))


def test_the_hash_depends_on_the_weights(models):
    first, second = models / "a.safetensors", models / "b.safetensors"
    save_mean_encoder(first, "hub:small", name="mine")
    first_hash = load_encoder(str(first)).config_hash
    write(models, seed=1)
    save_mean_encoder(second, "hub:small", name="mine")
    assert load_encoder(str(second)).config_hash != first_hash


def test_missing_weights_raise_an_error_and_write_no_file(models):
    path = models / "e.safetensors"
    with pytest.raises(WeightsError, match="virchow2"):
        save_mean_encoder(path, "hub:virchow2", name="x")
    assert not path.exists()


def test_classical_features_are_supported(models, tissue):
    path = models / "c.safetensors"
    config = save_mean_encoder(path, "classical-1", name="plain", mpp=1.0)
    assert config.sampling.target_mpp == 1.0
    assert load_encoder(str(path)).embed(tissue(300, 300, seed=1)).shape == (273,)
