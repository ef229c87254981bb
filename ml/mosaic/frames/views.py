"""A usable frame as registration sees it: grey without the fixed pattern, and where to trust it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ml.keypoints.masks import specular_mask
from ml.mosaic.direct.pyramid import DirectView, direct_view
from ml.mosaic.frames.survey import Survey, work_grey
from ml.types import ArrayBool, ArrayF32, ImageU8

FIBRE_SIGMA, PLAIN_SIGMA = 2.0, 1.0
"""Gaussian (px) before key points: for a fibre bundle wide enough that no fibre becomes one."""

COLOUR_PX = 120
"""Gains and the growing preview need no finer colour."""

RIM_PX = 10
"""Margin inside the rim, px: closer to it the image shows static shading."""


@dataclass(frozen=True, slots=True)
class FrameView:
    """A frame at working size.

    Attributes:
        position: of the frame in the source.
        grey: (h, w) uint8, fixed pattern off, low-passed so that fibres leave no key point.
        mask: (h, w) bool, well inside the scope, off overlays and highlights.
        direct: what direct alignment compares.
        colour: (h', w', 3) float32, log brightness, longest side ``COLOUR_PX``.
    """

    position: int
    grey: ImageU8
    mask: ArrayBool
    direct: DirectView
    colour: ArrayF32


def frame_view(position: int, rgb: ImageU8, survey: Survey) -> FrameView:
    """Prepare one frame of the source for registration."""
    grey = work_grey(rgb, survey.scale).astype(np.float32)
    if survey.is_fibre:
        grey = grey - survey.pattern
    size = (grey.shape[1], grey.shape[0])
    glare = cv2.resize(specular_mask(rgb).astype(np.uint8), size) > 0
    # static shading of the rim would bias every alignment towards no motion
    rim = np.ones((2 * RIM_PX + 1, 2 * RIM_PX + 1), np.uint8)
    inner = cv2.erode(survey.mask.astype(np.uint8), rim, borderValue=1) > 0
    mask = inner & ~glare
    sigma = FIBRE_SIGMA if survey.is_fibre else PLAIN_SIGMA
    smooth = np.clip(cv2.GaussianBlur(grey, (0, 0), sigma), 0, 255).astype(np.uint8)
    share = COLOUR_PX / max(size)
    small = (max(1, round(size[0] * share)), max(1, round(size[1] * share)))
    colour = np.log(cv2.resize(rgb, small, interpolation=cv2.INTER_AREA).astype(np.float32) + 4)
    # so would the lamp's fall-off, which is one-sided along the rim
    flat = grey if survey.shading is None else grey / survey.shading
    direct = direct_view(flat.astype(np.float32), mask)
    return FrameView(position, smooth, mask, direct, colour.astype(np.float32))


def log_gain(a: FrameView, b: FrameView, xy_a: ArrayF32, xy_b: ArrayF32) -> ArrayF32:
    """(3,) float32: median log brightness of b over a at corresponding working px."""
    if not len(xy_a):
        return np.zeros(3, np.float32)
    return np.asarray(np.median(_colour_at(b, xy_b) - _colour_at(a, xy_a), axis=0), np.float32)


def _colour_at(view: FrameView, xy: ArrayF32) -> ArrayF32:
    share = view.colour.shape[1] / view.grey.shape[1]
    limit = (view.colour.shape[1] - 1, view.colour.shape[0] - 1)
    at = np.clip((xy * share).astype(np.int64), 0, limit)
    return np.asarray(view.colour[at[:, 1], at[:, 0]])
