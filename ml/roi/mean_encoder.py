"""Encoders without training: the mean of the vectors of the patches of a region."""

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
"""Resolution of a 20x scan, on which most published networks are trained."""
DENSITY = 1.0
"""Patches per patch area: a third of the default, as published networks are a hundred times
slower."""


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
    """Write an encoder whose vector is the mean of the vectors of the patches, of unit length.

    Args:
        features: See ``make_patch_encoder``; encoders with trained weights are not supported.
        name: Name of the encoder in results and in the portal.
        stain: See ``stained.STAINS``; published networks are trained without normalisation.
        mpp, tile_px: Microns per pixel and side of a patch; by default those of the recipe, or 0.5
            and the input size of the network.
        density: Patches per patch area.
    Returns:
        The configuration written.
    Raises:
        UnknownNameError: Unknown features or stain normalisation.
        WeightsError: The weights of the features are missing.
    """
    if stain not in STAINS:
        raise UnknownNameError("stain normalisation", stain, list(STAINS))
    patches = make_patch_encoder(features)
    recipe_mpp, recipe_tile_px = _recipe_scale(features, patches)
    patch_px = tile_px or recipe_tile_px
    config = EncoderConfig(
        kind=kind,
        features=features,
        stain=stain,
        edge_px=2.0 * patch_px,
        sampling=SamplingConfig(target_mpp=mpp or recipe_mpp, patch_px=patch_px, density=density),
        network=vertex_mean_config(patches.dim),
    )
    network = VertexMean(config.network)
    save_encoder(path, name=name, version=version, config=config, network=network, patches=patches)
    return config


def _recipe_scale(features: str, patches: PatchEncoder) -> tuple[float, int]:
    """Microns per pixel and side of a patch that the features expect."""
    if features.startswith(FOUNDATION_PREFIX) and "+" not in features:
        recipe = recipe_of(features.removeprefix(FOUNDATION_PREFIX))
        return recipe.mpp, recipe.tile_px
    patch_px = patches.transform.resize_px if isinstance(patches, PublishedEncoder) else PATCH_PX
    return DEFAULT_MPP, patch_px
