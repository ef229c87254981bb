"""Serialisation of stain estimates, and the shipped target slide."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypedDict

import numpy as np

from ml.errors import BadInputError
from ml.roi.stain.deconvolution import QUANTILE_LEVELS, StainEstimate
from ml.roi.stain.target import TARGET
from ml.types import ArrayF64

FORMAT = 1  # of the stored estimate; others are rejected


class StoredStain(TypedDict):
    """A ``StainEstimate`` in JSON types."""

    format: int
    matrix: list[list[float]]
    scale: list[float]
    density_scale: float
    method: str
    reason: str
    quantiles: list[list[float]]
    white: list[float]


def stain_to_dict(estimate: StainEstimate) -> StoredStain:
    """Convert an estimate to JSON types; ``stain_from_dict`` restores it exactly."""
    return {
        "format": FORMAT,
        "matrix": estimate.matrix.tolist(),
        "scale": estimate.scale.tolist(),
        "density_scale": estimate.density_scale,
        "method": estimate.method,
        "reason": estimate.reason,
        "quantiles": estimate.quantiles.tolist(),
        "white": list(estimate.white),
    }


def stain_from_dict(values: Mapping[str, Any]) -> StainEstimate:
    """Restore the estimate of ``stain_to_dict``.

    Raises:
        BadInputError: Another format, missing or unknown keys, or other shapes.
    """
    if set(values) != set(StoredStain.__annotations__) or values["format"] != FORMAT:
        keys = ", ".join(sorted(map(str, values)))
        raise BadInputError(f"stain estimate: expected format {FORMAT} with its keys, got {keys}")
    levels = QUANTILE_LEVELS.size
    quantiles = _array(values, "quantiles")
    if quantiles.shape not in {(2, 0), (2, levels)}:
        raise BadInputError(f"stain estimate: quantiles are {quantiles.shape}, not (2, {levels})")
    matrix, scale, white = (_array(values, name) for name in ("matrix", "scale", "white"))
    if matrix.shape != (2, 3) or scale.shape != (2,) or white.shape != (3,):
        raise BadInputError(
            f"stain estimate: matrix {matrix.shape}, scale {scale.shape}, white {white.shape}"
        )
    return StainEstimate(
        matrix,
        scale,
        float(values["density_scale"]),
        str(values["method"]),
        str(values["reason"]),
        quantiles,
        (float(white[0]), float(white[1]), float(white[2])),
    )


@lru_cache(maxsize=1)
def load_target() -> StainEstimate:
    """Stains of the target slide of normalisation, from ``ml.roi.stain.target``."""
    return stain_from_dict(TARGET)


def _array(values: Mapping[str, Any], name: str) -> ArrayF64:
    try:
        array = np.array(values[name], np.float64)
    except (TypeError, ValueError) as error:
        raise BadInputError(f"stain estimate: {name} is not a table of numbers") from error
    if not np.isfinite(array).all():
        raise BadInputError(f"stain estimate: {name} holds a number that is not finite")
    return array
