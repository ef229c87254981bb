"""Stain normalisation of patches to the target slide, by a colour table per slide."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

from ml.errors import ShapeError
from ml.roi.patches import Corner, PatchSource
from ml.roi.stain.deconvolution import StainEstimate, with_residual
from ml.types import ArrayF64, ImageU8

TABLE_SIDE = 65
"""Nodes per channel of the colour table (every fourth value), the maximum of Pillow."""
MAX_GAIN = 3.0
"""Largest factor of a change in concentration, so that faint background is not amplified."""
GLASS_OD = 0.04
"""Largest concentration of glass and dust, which are not changed."""
MAX_RESIDUAL_OD = 0.08
"""Largest residual density that is kept; more is noise or saturation."""


def normalise(patch: ImageU8, estimate: StainEstimate, target: StainEstimate) -> ImageU8:
    """Match the haematoxylin and eosin of a patch to those of the target slide.

    Concentrations by the matrix of the slide are mapped from its quantiles to those of the target,
    and converted to RGB by the matrix of the target. Part of the residual is kept. Empty glass gets
    the colour of the target.

    Args:
        patch: (H, W, 3) uint8 RGB of the slide.
        estimate: Stains of the slide; method "none" returns the patch unchanged.
        target: Stains of the target slide, see ``load_target``.
    Returns:
        (H, W, 3) uint8 RGB.
    Raises:
        ShapeError: Another shape or type.
    Source: the retrieval paper, section II (histogram matching of both channels).
    """
    if patch.ndim != 3 or patch.shape[-1] != 3 or patch.dtype != np.uint8:
        raise ShapeError("patch", expected="(H, W, 3) uint8", actual=f"{patch.shape} {patch.dtype}")
    if estimate.method == "none" or not estimate.quantiles.size or not target.quantiles.size:
        return patch
    table = _table(_key(estimate), _key(target))
    return np.array(Image.fromarray(patch).filter(table))


class NormalisedPatches:
    """``PatchSource`` of patches normalised to the target slide."""

    def __init__(self, source: PatchSource, estimate: StainEstimate, target: StainEstimate) -> None:
        self._source, self._estimate, self._target = source, estimate, target

    def read(self, corner_px: Corner, patch_px: int) -> ImageU8:
        """See ``PatchSource``."""
        return normalise(self._source.read(corner_px, patch_px), self._estimate, self._target)


def normalise_exactly(pixels: ImageU8, estimate: StainEstimate, target: StainEstimate) -> ArrayF64:
    """Normalise pixels without the table: (..., 3) float64 RGB in [0, 255]."""
    return _map_rgb(pixels, _stains(_key(estimate)), _stains(_key(target)))


_Stains = tuple[ArrayF64, ArrayF64, ArrayF64]
_Key = tuple[bytes, bytes, bytes]


def _map_rgb(rgb: np.ndarray, source: _Stains, target: _Stains) -> ArrayF64:
    od = np.log10(source[2] + 1) - np.log10(np.asarray(rgb, np.float64) + 1)
    basis, target_basis = with_residual(source[0]), with_residual(target[0])
    concentration = od @ np.linalg.inv(basis)
    for channel in range(2):
        concentration[..., channel] = _match_quantiles(
            np.maximum(concentration[..., channel], 0.0), source[1][channel], target[1][channel]
        )
    concentration[..., 2] = np.clip(concentration[..., 2], -MAX_RESIDUAL_OD, MAX_RESIDUAL_OD)
    out = (target[2] + 1) * 10.0 ** -(concentration @ target_basis) - 1
    result: ArrayF64 = np.clip(out, 0.0, 255.0)
    return result


def _match_quantiles(values: ArrayF64, source: ArrayF64, target: ArrayF64) -> ArrayF64:
    """Identity on glass, piecewise linear through the quantiles, linear above."""
    is_used = np.append(np.diff(source) > 1e-4, True) & (source > 2 * GLASS_OD)
    if not is_used.any():
        return values
    targets = np.clip(target[is_used], source[is_used] / MAX_GAIN, source[is_used] * MAX_GAIN)
    x = np.r_[0.0, GLASS_OD, source[is_used]]
    y = np.r_[0.0, GLASS_OD, np.maximum(targets, GLASS_OD)]
    above = y[-1] + (values - x[-1]) * (y[-1] / x[-1])
    return np.where(values > x[-1], above, np.interp(values, x, y))


def _key(stains: StainEstimate) -> _Key:
    return (
        np.asarray(stains.matrix, np.float64).tobytes(),
        np.asarray(stains.quantiles, np.float64).tobytes(),
        np.asarray(stains.white, np.float64).tobytes(),
    )


@lru_cache(maxsize=32)
def _table(source: _Key, target: _Key) -> Any:
    axis = np.linspace(0, 255, TABLE_SIDE)
    blue, green, red = np.meshgrid(axis, axis, axis, indexing="ij")
    nodes = np.stack([red, green, blue], axis=-1).reshape(-1, 3)
    mapped = _map_rgb(nodes, _stains(source), _stains(target)) / 255
    return ImageFilter.Color3DLUT(TABLE_SIDE, np.ascontiguousarray(mapped, np.float32).ravel())


def _stains(key: _Key) -> _Stains:
    matrix, quantiles, white = (np.frombuffer(data, np.float64) for data in key)
    return matrix.reshape(2, 3), quantiles.reshape(2, -1), white
