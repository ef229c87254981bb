"""Make a patch look as if it came from the target slide: one colour table a slide."""

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
"""Nodes a channel of the colour table (every fourth value), the largest that Pillow takes."""
MAX_GAIN = 3.0
"""No concentration becomes more than three times weaker or stronger: a slide's faintest veil is not
made into stain."""
GLASS_OD = 0.04
"""Concentrations up to this are glass and dust, and stay what they are."""
MAX_RESIDUAL_OD = 0.08
"""Density that neither stain explains and that is kept: more is noise, or channels cut at 255."""


def normalise(patch: ImageU8, estimate: StainEstimate, target: StainEstimate) -> ImageU8:
    """Match the haematoxylin and eosin of a patch to those of the target slide.

    Concentrations under the slide's own matrix go through the map that takes the slide's quantiles
    to the target's, and back to RGB under the target's matrix. Of what neither stain explains a
    little is kept. Empty glass becomes that of the target.

    Args:
        patch: (H, W, 3) uint8 RGB of the slide that ``estimate`` is of.
        estimate: of the slide; "none" returns the patch as it is.
        target: of the target slide, ``load_target()``.
    Returns:
        (H, W, 3) uint8 RGB, a new array unless nothing was to be done.
    Raises:
        ShapeError: another array.
    Source: the retrieval paper, section II (histogram matching of both channels).
    """
    if patch.ndim != 3 or patch.shape[-1] != 3 or patch.dtype != np.uint8:
        raise ShapeError("patch", expected="(H, W, 3) uint8", actual=f"{patch.shape} {patch.dtype}")
    if estimate.method == "none" or not estimate.quantiles.size or not target.quantiles.size:
        return patch
    table = _table(_key(estimate), _key(target))
    return np.array(Image.fromarray(patch).filter(table))


class NormalisedPatches:
    """A ``PatchSource`` whose patches look as if they came from the target slide."""

    def __init__(self, source: PatchSource, estimate: StainEstimate, target: StainEstimate) -> None:
        self._source, self._estimate, self._target = source, estimate, target

    def read(self, corner_px: Corner, patch_px: int) -> ImageU8:
        """See ``PatchSource``."""
        return normalise(self._source.read(corner_px, patch_px), self._estimate, self._target)


def normalised_exactly(pixels: ImageU8, estimate: StainEstimate, target: StainEstimate) -> ArrayF64:
    """(..., 3) float64 RGB in [0, 255]: the map itself, which the table interpolates."""
    return _mapped(pixels, _stains(_key(estimate)), _stains(_key(target)))


_Stains = tuple[ArrayF64, ArrayF64, ArrayF64]
_Key = tuple[bytes, bytes, bytes]


def _mapped(rgb: np.ndarray, own: _Stains, target: _Stains) -> ArrayF64:
    od = np.log10(own[2] + 1) - np.log10(np.asarray(rgb, np.float64) + 1)
    basis, target_basis = with_residual(own[0]), with_residual(target[0])
    concentration = od @ np.linalg.inv(basis)
    for channel in range(2):
        concentration[..., channel] = _matched(
            np.maximum(concentration[..., channel], 0.0), own[1][channel], target[1][channel]
        )
    concentration[..., 2] = np.clip(concentration[..., 2], -MAX_RESIDUAL_OD, MAX_RESIDUAL_OD)
    out = (target[2] + 1) * 10.0 ** -(concentration @ target_basis) - 1
    result: ArrayF64 = np.clip(out, 0.0, 255.0)
    return result


def _matched(values: ArrayF64, own: ArrayF64, target: ArrayF64) -> ArrayF64:
    """Unchanged on glass, then piecewise linear through the quantiles, straight on above."""
    keep = np.append(np.diff(own) > 1e-4, True) & (own > 2 * GLASS_OD)
    if not keep.any():
        return values
    gained = np.clip(target[keep], own[keep] / MAX_GAIN, own[keep] * MAX_GAIN)
    x = np.r_[0.0, GLASS_OD, own[keep]]
    y = np.r_[0.0, GLASS_OD, np.maximum(gained, GLASS_OD)]
    above = y[-1] + (values - x[-1]) * (y[-1] / x[-1])
    return np.where(values > x[-1], above, np.interp(values, x, y))


def _key(stains: StainEstimate) -> _Key:
    return (
        np.asarray(stains.matrix, np.float64).tobytes(),
        np.asarray(stains.quantiles, np.float64).tobytes(),
        np.asarray(stains.white, np.float64).tobytes(),
    )


@lru_cache(maxsize=32)
def _table(own: _Key, target: _Key) -> Any:
    axis = np.linspace(0, 255, TABLE_SIDE)
    blue, green, red = np.meshgrid(axis, axis, axis, indexing="ij")
    nodes = np.stack([red, green, blue], axis=-1).reshape(-1, 3)
    mapped = _mapped(nodes, _stains(own), _stains(target)) / 255
    return ImageFilter.Color3DLUT(TABLE_SIDE, np.ascontiguousarray(mapped, np.float32).ravel())


def _stains(key: _Key) -> _Stains:
    matrix, quantiles, white = (np.frombuffer(data, np.float64) for data in key)
    return matrix.reshape(2, 3), quantiles.reshape(2, -1), white
