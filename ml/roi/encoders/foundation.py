"""Patch encoders from pathology foundation models, by recipe."""

from __future__ import annotations

import importlib.util
import os
import pickle
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ml.errors import WeightsError
from ml.networks.device import select_compute
from ml.networks.vision_transformer import PooledTransformer, VisionTransformer
from ml.networks.weightsfile import load_tensors
from ml.roi.encoders.hub import TokenPool, load_transformers
from ml.roi.encoders.pooling import pool_tokens
from ml.roi.encoders.published import PublishedEncoder
from ml.roi.encoders.recipes import AttentionPool, Recipe, recipe_of

PREFIX = "hub:"
FOLDER_VARIABLE = "TESSERA_MODELS"
"""Environment variable of a folder with a subfolder per model, named as its recipe."""


@lru_cache(maxsize=2)
def load_foundation(name: str, device: str | None = None) -> PublishedEncoder:
    """Load a foundation model by the name of its recipe.

    Weights are read from ``$TESSERA_MODELS/<name>`` or the cache of the hub, not downloaded.

    Args:
        name: See ``recipes.RECIPES``.
        device: See ``select_compute``.
    Raises:
        UnknownNameError: Unknown recipe.
        WeightsError: The weights are missing (the message says how to get them) or wrong.
    """
    recipe = recipe_of(name)
    return foundation_encoder(recipe, weights_file(recipe), device=device)


def foundation_encoder(
    recipe: Recipe, path: Path, *, device: str | None = None
) -> PublishedEncoder:
    """Create the encoder of a recipe with the weights of a file.

    Raises:
        WeightsError: Damaged file, or tensors of another architecture.
    """
    where = f"{PREFIX}{recipe.name}"
    if recipe.layout == "transformers":
        model, prefix = load_transformers(str(path.parent), where)
        network: nn.Module = TokenPool(model, str(recipe.pool), prefix=prefix)
    else:
        network = load_tensors(_uninitialised_network(recipe), _tensors(path, recipe), where)
    encoder = PublishedEncoder(
        where, network, recipe.transform, device=select_compute(device).device, half=recipe.half
    )
    if encoder.dim != recipe.dim:
        raise WeightsError(f"{where}: expected vectors of {recipe.dim}, got {encoder.dim}")
    return encoder


def foundation_network(recipe: Recipe) -> nn.Module:
    """Create the network of a recipe with random weights."""
    if isinstance(recipe.pool, AttentionPool):
        pool = recipe.pool
        return PooledTransformer(recipe.architecture, out_width=pool.dim, heads=pool.heads)
    return _PooledTokens(recipe)


def weights_file(recipe: Recipe) -> Path:
    """Path of the weights of a recipe.

    Raises:
        WeightsError: The weights are neither in the folder nor in the cache.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        for file in recipe.files:
            path = Path(folder) / recipe.name / file
            if path.is_file():
                return path
    cached = _cached_weights(recipe)
    if cached is None:
        request = "ask for access at" if recipe.gated else "read its licence at"
        raise WeightsError(
            f"{recipe.name}: its weights are not here; {request}"
            f" https://huggingface.co/{recipe.repository}, then"
            f" `hf download {recipe.repository} --local-dir MODELS/{recipe.name}`"
            f" and set {FOLDER_VARIABLE}=MODELS"
        )
    return cached


def _cached_weights(recipe: Recipe) -> Path | None:
    if importlib.util.find_spec("huggingface_hub") is None:  # part of the extra ``hub``
        return None
    from huggingface_hub import try_to_load_from_cache

    for file in recipe.files:
        path = try_to_load_from_cache(recipe.repository, file)
        if isinstance(path, str):
            return Path(path)
    return None


class _PooledTokens(VisionTransformer):
    """Vision transformer with pooled tokens; tensors are named as in the published file."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe.architecture)
        self._pool = str(recipe.pool)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, input_px, input_px) normalised pixels to (B, dim)."""
        return pool_tokens(super().forward(pixels), self._pool, prefix=self.config.prefix)


def _uninitialised_network(recipe: Recipe) -> nn.Module:
    """Create the network without initial values, as random ones take long for a billion weights."""
    with torch.device("meta"):
        network = foundation_network(recipe)
    return network.to_empty(device="cpu")


def _tensors(path: Path, recipe: Recipe) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            tensors: Mapping[str, Tensor] = load_file(path)
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (SafetensorError, OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise WeightsError(
            f"{PREFIX}{recipe.name}: {path.name} is damaged, or is not a weights file"
        ) from error
    if not recipe.prefix:
        return dict(tensors)
    expected = foundation_network_names(recipe)
    renamed = {
        k.removeprefix(recipe.prefix): v for k, v in tensors.items() if k.startswith(recipe.prefix)
    }
    return {key: value for key, value in renamed.items() if key in expected}


def foundation_network_names(recipe: Recipe) -> frozenset[str]:
    """Names of the tensors of the network of a recipe."""
    with torch.device("meta"):
        return frozenset(foundation_network(recipe).state_dict())
