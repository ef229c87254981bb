"""The stains of a slide: haematoxylin inside nuclei, eosin outside them, once a slide.

What is not an H&E section is found out first, and the reason is kept with the estimate: an empty
slide, fluorescence, an immunostain, a single stain. Such a slide is not normalised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ml.errors import BadInputError
from ml.imaging.slides import SlideImage
from ml.imaging.slides.grid import StoredLevel
from ml.roi.patches import checked_image
from ml.roi.stain.deconvolution import (
    MIN_TISSUE_OD,
    QUANTILE_LEVELS,
    RUIFROK_HE,
    StainEstimate,
    doubt_about,
    fixed_stains,
    macenko_vectors,
    optical_density,
    unit_rows,
)
from ml.roi.stain.fields import TissueFields, tissue_fields
from ml.roi.stain.nuclei import MAX_MPP, nucleus_mask
from ml.types import ArrayBool, ArrayF32, ArrayF64, DisplayRange, ImageU8

STAIN_METHODS = ("nuclei", "macenko", "none")
_MIN_BRIGHTNESS = 60.0
"""In transmitted light half of a slide is brighter than this in some channel."""


@dataclass(frozen=True, slots=True)
class StainConfig:
    """How the stains of a slide are found."""

    method: str = "nuclei"  # "nuclei": the paper's way; "macenko"; "none": no normalisation
    field_mpp: float = 1.0  # nuclei are five or more pixels wide, yet a whole slide is 16 reads
    fields: int = 16  # of 512 px, spread over the tissue: 4 million pixels at most
    iterations: int = 2  # nuclei are found again with the vectors of the round before
    purity: float = 0.9  # quantile of the angle taken as pure: 0.5 is the median direction
    min_tissue_px: int = 2_000  # fewer pixels of tissue than this are no slide to learn from
    min_nucleus_px: int = 400  # fewer pixels in nuclei: Macenko's way instead
    max_brown: float = 0.03  # share of brown tissue pixels from which it is an immunostain
    pixels: int = 200_000  # most pixels kept for vectors and quantiles


def estimate_stain(
    slide: SlideImage, *, mpp: float | None = None, config: StainConfig | None = None
) -> StainEstimate:
    """Find the stains of a slide from its tissue at low power.

    Args:
        slide: open slide or still.
        mpp: microns per level-0 pixel; None takes what the file says.
        config: method and limits.
    Returns:
        StainEstimate: method "nuclei"; "macenko" where that was asked for or too few nuclei are
        seen; "none" with the reason where the slide is blank, not in transmitted light,
        immunostained or not of two stains.
    Raises:
        BadInputError: an unknown method.
    Source: the retrieval paper, section II (haematoxylin inside nuclei, eosin outside them and
        away from the background, Ruifrok and Johnston's deconvolution); departs from it by a
        nucleus mask without a network and by a quantile of the direction instead of its mean.
    """
    config = _checked(config)
    fields = tissue_fields(slide, mpp=mpp, field_mpp=config.field_mpp, count=config.fields)
    reason = _why_not_transmitted(fields.thumbnail, fields.tissue_share)
    if reason:
        return _none(fields.thumbnail, reason)
    found = _from_fields(list(fields.read(slide)), fields, config)
    return replace(found, white=fields.white)


def estimate_stain_of_image(
    image: ImageU8, *, mpp: float | None = None, config: StainConfig | None = None
) -> StainEstimate:
    """``estimate_stain`` of an image in memory, (H, W, 3) uint8 RGB."""
    with SlideImage(_Memory(checked_image(image))) as slide:
        return estimate_stain(slide, mpp=mpp, config=config)


def _from_fields(fields: list[ImageU8], where: TissueFields, config: StainConfig) -> StainEstimate:
    density = [optical_density(field, where.white) for field in fields]
    tissue = [_stained(od) for od in density]
    stained = np.concatenate([od[m] for od, m in zip(density, tissue, strict=True)])
    pixels = _thinned(stained, config)
    sample = np.concatenate([field[m] for field, m in zip(fields, tissue, strict=True)])
    if pixels.shape[0] < config.min_tissue_px:
        return _none(
            fields[0], f"only {pixels.shape[0]} tissue pixels, {config.min_tissue_px} needed"
        )
    brown = brown_share(pixels)
    if brown > config.max_brown:
        return _none(sample, f"immunostain: {100 * brown:.0f} % of the tissue is brown")
    if config.method == "none":
        return _none(sample, "asked for")
    matrix, method, reason = _vectors(density, tissue, pixels, where.mpp, config)
    doubt = doubt_about(matrix)
    if doubt:
        return _none(sample, f"{reason}; {doubt}" if reason else doubt)
    return _measured(matrix, pixels, method, reason)


def _vectors(
    density: list[ArrayF32],
    tissue: list[ArrayBool],
    pixels: ArrayF64,
    mpp: float,
    config: StainConfig,
) -> tuple[ArrayF64, str, str]:
    if config.method == "macenko":
        return macenko_vectors(pixels), "macenko", ""
    if mpp > MAX_MPP:
        reason = f"{mpp:.1f} um per pixel is too coarse to see nuclei"
        return macenko_vectors(pixels), "macenko", reason
    matrix = unit_rows(RUIFROK_HE)
    for _ in range(config.iterations):
        inside = [_nuclei(od, matrix, mpp) & m for od, m in zip(density, tissue, strict=True)]
        nuclear = np.concatenate([od[m] for od, m in zip(density, inside, strict=True)])
        if nuclear.shape[0] < config.min_nucleus_px:
            reason = f"only {nuclear.shape[0]} pixels in nuclei, {config.min_nucleus_px} needed"
            return macenko_vectors(pixels), "macenko", reason
        outside = np.concatenate(
            [od[m & ~n] for od, m, n in zip(density, tissue, inside, strict=True)]
        )
        if outside.shape[0] < config.min_nucleus_px:
            reason = f"only {outside.shape[0]} pixels outside nuclei"
            return macenko_vectors(pixels), "macenko", reason
        nuclear, outside = _thinned(nuclear, config), _thinned(outside, config)
        matrix = pure_directions(nuclear, outside, config.purity)
    return matrix, "nuclei", ""


def pure_directions(nuclear: ArrayF64, other: ArrayF64, purity: float) -> ArrayF64:
    """The direction of haematoxylin from pixels in nuclei, and of eosin from the others.

    In the plane of the two median directions, the angle at quantile ``purity`` away from the other
    stain: nuclei lie on eosin, and cytoplasm holds some haematoxylin, so the medians are mixtures.

    Args:
        nuclear, other: (N, 3) optical densities.
        purity: 0.5 gives the medians.
    Returns:
        (2, 3) float64 unit vectors, none negative.
    """
    first, second = (_median_direction(od) for od in (nuclear, other))
    side = second - (second @ first) * first
    length = float(np.linalg.norm(side))
    if length < 1e-6:
        return np.stack([first, second])
    plane = np.stack([first, side / length])
    angle = [np.arctan2(*(od @ plane.T).T[::-1]) for od in (nuclear, other)]
    ends = (np.quantile(angle[0], 1 - purity), np.quantile(angle[1], purity))
    vectors = np.array([[np.cos(a), np.sin(a)] for a in ends]) @ plane
    return unit_rows(np.maximum(vectors, 1e-6))


def brown_share(od: ArrayF64) -> float:
    """Share of the pixels (N, 3) that absorb blue most: DAB, never haematoxylin or eosin."""
    brown = (od[:, 2] > 1.1 * od[:, 1]) & (od[:, 2] > 1.1 * od[:, 0]) & (od[:, 2] > 0.2)
    return float(brown.mean()) if od.size else 0.0


def _why_not_transmitted(thumbnail: ImageU8, tissue_share: float) -> str:
    middle = float(np.median(thumbnail.max(axis=-1)))
    if middle < _MIN_BRIGHTNESS:
        return f"dark background (half the slide below {middle:.0f} of 255): fluorescence, not H&E"
    if tissue_share < 0.001:
        return f"blank: {100 * tissue_share:.2f} % of the slide is tissue"
    return ""


def _stained(od: ArrayF32) -> ArrayBool:
    """Tissue that is neither background nor so dark that it says nothing about colour."""
    return np.asarray((od.max(axis=-1) > MIN_TISSUE_OD) & (od.mean(axis=-1) < 1.5))


def _nuclei(od: ArrayF32, matrix: ArrayF64, mpp: float) -> ArrayBool:
    unmix = np.linalg.pinv(matrix)[:, 0].astype(np.float32)
    return nucleus_mask(np.maximum(od @ unmix, 0), mpp=mpp).mask


def _measured(matrix: ArrayF64, pixels: ArrayF64, method: str, reason: str) -> StainEstimate:
    concentration = pixels @ np.linalg.pinv(matrix)
    quantiles = np.maximum(np.quantile(concentration, QUANTILE_LEVELS, axis=0).T, 0.0)
    scale = np.maximum(np.percentile(concentration, 99, axis=0), 0.15)
    dark = max(float(np.percentile(pixels.mean(axis=1), 99)), 0.2)
    return StainEstimate(matrix, scale, dark, method, reason, np.ascontiguousarray(quantiles))


def _none(pixels: ImageU8, reason: str) -> StainEstimate:
    return replace(fixed_stains(pixels, reason=reason), method="none")


def _thinned(od: ArrayF32, config: StainConfig) -> ArrayF64:
    step = max(1, -(-od.shape[0] // config.pixels))
    return od[::step].astype(np.float64)


def _median_direction(od: ArrayF64) -> ArrayF64:
    unit = od / np.linalg.norm(od, axis=1, keepdims=True)
    middle = np.median(unit, axis=0)
    return np.asarray(middle / np.linalg.norm(middle))


def _checked(config: StainConfig | None) -> StainConfig:
    config = config or StainConfig()
    if config.method not in STAIN_METHODS:
        raise BadInputError(
            f"stain method: expected one of {', '.join(STAIN_METHODS)}, got {config.method!r}"
        )
    return config


class _Memory:
    """An image in memory as a ``Reader`` of one level."""

    vendor = "memory"
    properties: Mapping[str, str] = {}

    def __init__(self, image: ImageU8) -> None:
        self._image = image
        self.icc_profile: bytes | None = None
        self.display_range: DisplayRange | None = None
        self.mpp: tuple[float | None, float | None] = (None, None)
        size = (image.shape[1], image.shape[0])
        self.stored: tuple[StoredLevel, ...] = (StoredLevel(*size, downsample=1.0),)

    def read(self, level: int, x: int, y: int, width: int, height: int) -> ImageU8:
        out = np.full((height, width, 3), 255, np.uint8)
        left, top = max(x, 0), max(y, 0)
        part = self._image[top : max(y + height, 0), left : max(x + width, 0)]
        out[top - y : top - y + part.shape[0], left - x : left - x + part.shape[1]] = part
        return out

    def close(self) -> None:
        pass
