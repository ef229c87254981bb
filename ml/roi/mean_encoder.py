"""Encoders that need no training: the mean of what a patch encoder says of a region's patches."""

from __future__ import annotations

from pathlib import Path

from ml.errors import UnknownNameError
from ml.networks.vertex_mean import VertexMean, vertex_mean_config
from ml.roi.config import EncoderConfig
from ml.roi.encoders.foundation import PREFIX as FOUNDATION_PREFIX
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.encoders.published import PublishedEncoder
from ml.roi.encoders.recipes import recipe_of
from ml.roi.encoders.registry import make_patch_encoder
from ml.roi.measures.features import PATCH_PX
from ml.roi.sampling import SamplingConfig
from ml.roi.stained import STAINS
from ml.roi.weights import save_encoder

DEFAULT_MPP = 0.5
"""A 20x scan: what published networks are mostly trained on."""
DENSITY = 1.0
"""Patches per patch area: a third of the usual, as each costs a hundred times as much as ours."""


def save_mean_encoder(
    path: Path,
    features: str,
    *,
    name: str,
    version: str = "1",
    kind: str = "histology",
    stain: str = "none",
    mpp: float | None = None,
    tile_px: int | None = None,
    density: float = DENSITY,
) -> EncoderConfig:
    """Write an encoder whose vector is the mean of its patches', of unit length.

    Args:
        features: see ``make_patch_encoder``; of our own only those without weights.
        name: what results and the portal call it.
        stain: see ``stained.STAINS``; published networks are trained on slides as they are.
        mpp, tile_px: microns per pixel and side of a patch; by default the recipe's, else 0.5 and
            what the network resizes to.
        density: patches per patch area.
    Returns:
        The configuration written.
    Raises:
        UnknownNameError: no such features or stain normalisation.
        WeightsError: their weights are not here.
    """
    if stain not in STAINS:
        raise UnknownNameError("stain normalisation", stain, list(STAINS))
    patches = make_patch_encoder(features)
    own_mpp, own_tile = _wanted(features, patches)
    tile = tile_px or own_tile
    config = EncoderConfig(
        kind=kind,
        features=features,
        stain=stain,
        edge_px=2.0 * tile,
        sampling=SamplingConfig(target_mpp=mpp or own_mpp, patch_px=tile, density=density),
        network=vertex_mean_config(patches.dim),
    )
    network = VertexMean(config.network)
    save_encoder(path, name=name, version=version, config=config, network=network, patches=patches)
    return config


def _wanted(features: str, patches: PatchEncoder) -> tuple[float, int]:
    """Microns per pixel and side of a patch that the features are meant for."""
    if features.startswith(FOUNDATION_PREFIX) and "+" not in features:
        recipe = recipe_of(features.removeprefix(FOUNDATION_PREFIX))
        return recipe.mpp, recipe.tile_px
    tile = patches.transform.resize_px if isinstance(patches, PublishedEncoder) else PATCH_PX
    return DEFAULT_MPP, tile
