"""Propose the modality of an image: histology or endoscopy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ml.errors import ShapeError
from ml.imaging.resize import reduce_to
from ml.types import ArrayF64, ImageU8

Modality: TypeAlias = Literal["histology", "endoscopy"]

LONG_SIDE_PX = 512
"""Larger images are reduced to this before they are measured."""
DARK_VALUE = 40
"""Largest channel of a pixel outside the field of view of a scope."""
CORNER_SHARE = 0.08
"""Side of the squares in the corners, as a share of the image's shorter side."""
MIN_LIT_PIXELS = 100

WEIGHTS: tuple[float, ...] = (8.723, -4.528, -3.065)
BIAS = -2.418
"""Logistic regression on ``modality_features``, fitted by ``python -m ml evaluate modality``
(docs/models/modality.md)."""


@dataclass(frozen=True, slots=True)
class ModalityProposal:
    """Proposed modality of an image.

    Attributes:
        probability: Of the proposed modality, 0.5 to 1.
    """

    modality: Modality
    probability: float


def propose_modality(rgb: ImageU8) -> ModalityProposal:
    """Tell a microscopic from an endoscopic image by its surround, redness and brightness.

    Args:
        rgb: (H, W, 3) uint8.
    Raises:
        ShapeError: not an RGB image.
    """
    logit = float(modality_features(rgb) @ np.asarray(WEIGHTS)) + BIAS
    endoscopy = 1 / (1 + np.exp(-logit))
    if endoscopy > 0.5:
        return ModalityProposal("endoscopy", float(endoscopy))
    return ModalityProposal("histology", float(1 - endoscopy))


def modality_features(rgb: ImageU8) -> ArrayF64:
    """Features of ``propose_modality``.

    Returns:
        (3,) float64: dark share of the four corners less that of the centre, as a scope's surround
        gives; log of mean blue over mean red of the lit pixels; their median largest channel, 0 to
        1.
    """
    if rgb.ndim != 3 or rgb.shape[2] != 3 or not rgb.size:
        raise ShapeError("rgb", expected="(H, W, 3)", actual=str(rgb.shape))
    image = reduce_to(rgb, LONG_SIDE_PX)
    value = image.max(axis=2)
    is_dark = value < DARK_VALUE
    height, width = value.shape
    side = max(1, round(CORNER_SHARE * min(height, width)))
    ends = (slice(None, side), slice(-side, None))
    corners = float(np.mean([is_dark[rows, columns].mean() for rows in ends for columns in ends]))
    third_y, third_x = height // 3, width // 3
    centre = is_dark[third_y : height - third_y, third_x : width - third_x].mean()
    lit = ~is_dark
    if lit.sum() < MIN_LIT_PIXELS:
        lit = np.ones_like(is_dark)
    red, _, blue = (float(image[..., channel][lit].mean()) for channel in range(3))
    brightness = float(np.median(value[lit])) / 255
    surround = max(corners - float(centre), 0.0)
    return np.array([surround, np.log((blue + 1) / (red + 1)), brightness])
