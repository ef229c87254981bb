"""Measures of a frame's quality, and the limits beyond which it is unfit for a mosaic.

Every measure is taken inside the view, at most ``MEASURE_PX`` wide, and most are judged against the
video's own usual value, because scopes and organs differ:

* dark, bright: mean grey; share of saturated px.
* glare: share of px whose smallest channel is near white.
* blurred: 90th percentile of the Laplacian over the mean grey, against the neighbours' in time
  (a percentile: highlights stay sharp in a blurred frame, but are few).
* smoke (or water, or fluid on the lens): the darkest spots are lifted, colour and detail fade.
* instrument: a large part of the view has lost the colour that tissue has, without being dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ml.mosaic.config import MosaicConfig
from ml.types import ArrayF64, ImageU8

MEASURE_PX = 480
"""Longest side a frame is measured at: cost does not grow with its resolution, and the thresholds
mean the same at each."""

EDGE_SIGMA, EDGE_PERCENTILE = 1.5, 90.0
"""Gaussian (px) that takes off noise and fibres before the Laplacian; and which of its values."""

NEIGHBOURS = 15
"""Frames to either side: about a second of video in all."""

DARK_LEVEL = 14
"""Grey up to this is outside the view: black after compression."""

COLOUR_PX = 120
"""Colour and veil are judged at this longest side: both cover large areas."""

MAX_SATURATED, MAX_GLARE = 0.5, 0.2
"""Shares of the view beyond which too little is left to register; of glare, beyond the usual."""

MIN_COLOUR = 40.0
"""Usual saturation (0 to 255) from which loss of colour is significant."""

MIN_LIFT, MAX_COLOUR_SHARE, MAX_DETAIL_SHARE = 1.35, 0.75, 0.75
"""Smoke: dark spots lifted by at least this factor, colour and detail faded to at most these."""

GREY_SHARE = 0.22
"""Share of the view that must have lost its colour beyond what is usual: an instrument."""

FLOOR_SHARE = 0.35
"""A frame below this share of the video's median sharpness is blurred, whatever its neighbours."""


@dataclass(frozen=True, slots=True)
class FrameMeasure:
    """Measurements of a frame; all zero where it could not be read (see ``unfit``)."""

    sharpness: float = 0.0
    brightness: float = 0.0
    saturated: float = 0.0
    glare: float = 0.0
    floor: float = 0.0
    colour: float = 0.0
    greyed: float = 0.0


def measure_frame(rgb: ImageU8) -> FrameMeasure:
    """Measure one frame, (H, W, 3) uint8."""
    scale = min(1.0, MEASURE_PX / max(rgb.shape[:2]))
    if scale < 1:
        size = (max(8, round(rgb.shape[1] * scale)), max(8, round(rgb.shape[0] * scale)))
        rgb = np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), np.uint8)
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
    inside = grey > DARK_LEVEL
    if inside.mean() < 0.02:
        return FrameMeasure(brightness=float(grey.mean()))
    brightness = float(grey[inside].mean())
    floor, colour, greyed = _veil(rgb)
    return FrameMeasure(
        sharpness=_sharpness_of(np.asarray(grey, np.uint8), inside) / max(brightness, 1.0),
        brightness=brightness if inside.mean() > 0.1 else 0.0,
        saturated=float((grey[inside] >= 250).mean()),
        glare=float((rgb.min(axis=2)[inside] >= 235).mean()),
        floor=floor,
        colour=colour,
        greyed=greyed,
    )


def verdicts(
    measures: Sequence[FrameMeasure], unfit: Sequence[tuple[str, str]], config: MosaicConfig
) -> list[tuple[str, str]]:
    """Judge each frame: (reason code, reason), or ("", "") if it is usable.

    Args:
        unfit: verdict known before for each frame, or ("", "").
    """
    rows = np.array([[getattr(m, name) for name in FrameMeasure.__slots__] for m in measures])
    rows = rows.reshape(-1, len(FrameMeasure.__slots__))
    fit = np.array(
        [
            not code and m.brightness >= config.min_brightness
            for m, (code, _) in zip(measures, unfit, strict=True)
        ],
        np.bool_,
    )
    usual = FrameMeasure(*(np.median(rows[fit], axis=0) if fit.any() else rows[:0].sum(axis=0)))
    results = []
    for i, measure in enumerate(measures):
        local_sharpness = _local_sharpness(rows[:, 0], fit, i)
        results.append(
            unfit[i] if unfit[i][0] else _verdict(measure, usual, local_sharpness, config)
        )
    return results


def _local_sharpness(sharpness: ArrayF64, fit: np.ndarray, i: int) -> float:
    low, high = max(0, i - NEIGHBOURS), i + NEIGHBOURS + 1
    neighbours = sharpness[low:high][fit[low:high]]
    return float(np.median(neighbours)) if len(neighbours) else 0.0


def _verdict(
    measure: FrameMeasure, usual: FrameMeasure, local_sharpness: float, config: MosaicConfig
) -> tuple[str, str]:
    """First fault of a frame as (reason, text); empty texts if it is usable."""
    for fault_of in (_exposure_fault, _cover_fault, _sharpness_fault):
        fault = fault_of(measure, usual, local_sharpness, config)
        if fault is not None:
            return fault
    return "", ""


def _exposure_fault(
    measure: FrameMeasure, usual: FrameMeasure, local_sharpness: float, config: MosaicConfig
) -> tuple[str, str] | None:
    if measure.brightness < config.min_brightness:
        needs = f"mean grey {measure.brightness:.0f}, needs {config.min_brightness:.0f}"
        return "dark", f"too dark: {needs}"
    if measure.saturated > MAX_SATURATED:
        return "bright", f"overexposed: {measure.saturated:.0%} of the view is saturated"
    if measure.glare > MAX_GLARE + usual.glare:
        return "glare", f"covered by highlights: {measure.glare:.0%} of the view"
    return None


def _cover_fault(
    measure: FrameMeasure, usual: FrameMeasure, local_sharpness: float, config: MosaicConfig
) -> tuple[str, str] | None:
    """Verdict on a frame whose tissue is hidden, recognised by colour (not in a grey video)."""
    if usual.colour <= MIN_COLOUR:
        return None
    is_lifted = (
        measure.floor > MIN_LIFT * usual.floor and measure.colour < MAX_COLOUR_SHARE * usual.colour
    )
    if is_lifted and measure.sharpness < MAX_DETAIL_SHARE * usual.sharpness:
        detail = measure.sharpness / max(usual.sharpness, 1e-9)
        return "smoke", f"veiled by smoke or water: detail {detail:.0%} of the usual"
    if measure.greyed > GREY_SHARE + usual.greyed:
        return "instrument", f"covered by an instrument: {measure.greyed:.0%} of the view is grey"
    return None


def _sharpness_fault(
    measure: FrameMeasure, usual: FrameMeasure, local_sharpness: float, config: MosaicConfig
) -> tuple[str, str] | None:
    if measure.sharpness < config.min_sharpness * local_sharpness:
        share = measure.sharpness / local_sharpness
        return "blurred", f"blurred: sharpness {share:.0%} of its neighbours'"
    if measure.sharpness < FLOOR_SHARE * usual.sharpness:
        share = measure.sharpness / usual.sharpness
        return "blurred", f"blurred: sharpness {share:.0%} of the usual"
    if measure.sharpness < 1e-4:
        return "uniform", "no structure: the view is uniform"
    return None


def _sharpness_of(grey: ImageU8, inside: np.ndarray) -> float:
    rim = 2 * (min(grey.shape) // 16) + 3  # the edge of the rim would count as sharpness
    core = cv2.erode(inside.astype(np.uint8), np.ones((rim, rim), np.uint8)).astype(np.bool_)
    if not core.any():
        core = inside
    smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), EDGE_SIGMA)
    edges = np.abs(cv2.Laplacian(smooth, cv2.CV_32F)[core])
    return float(np.percentile(edges, EDGE_PERCENTILE))


def _veil(rgb: ImageU8) -> tuple[float, float, float]:
    """Measures of smoke and instruments over the lit part, at ``COLOUR_PX``.

    All are 0 if less than 50 px are lit.

    Returns:
        floor: the lower quartile of the px' smallest channel, 0 to 255; smoke lifts it.
        colour: mean saturation, 0 to 255; smoke fades it.
        greyed: share of px with under 0.35 of the median saturation (at least ``MIN_COLOUR``),
            or under 16; an instrument raises it.
    """
    share = COLOUR_PX / max(rgb.shape[:2])
    size = (max(4, round(rgb.shape[1] * share)), max(4, round(rgb.shape[0] * share)))
    small = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA)
    largest, smallest = small.max(axis=2), small.min(axis=2)
    lit = cv2.erode((largest > 2 * DARK_LEVEL).astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    if lit.sum() < 50:
        return 0.0, 0.0, 0.0
    spread = (largest.astype(np.float32) - smallest) / np.maximum(largest, 1) * 255
    floor = float(np.percentile(smallest[lit], 25))
    colour = float(np.median(spread[lit]))
    greyed = float(((spread < 0.35 * max(colour, MIN_COLOUR)) | (spread < 16))[lit].mean())
    return floor, float(spread[lit].mean()), greyed
