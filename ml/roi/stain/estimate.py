"""Stain estimation of a slide: haematoxylin inside nuclei, eosin outside them.

Slides other than H&E (empty, fluorescence, immunostain, a single stain) are detected and not
normalised; the reason is stored with the estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ml.errors import BadInputError
from ml.imaging.slides.grid import StoredLevel
from ml.imaging.slides.slide import SlideImage
from ml.imaging.tissue.glass import pixel_haze
from ml.imaging.tissue.optical_density import optical_density
from ml.roi.patches import checked_image
from ml.roi.stain.deconvolution import (
    MIN_TISSUE_OD,
    QUANTILE_LEVELS,
    RUIFROK_HE,
    StainEstimate,
    macenko_vectors,
    published_stains,
    rejection_reason,
    unit_rows,
)
from ml.roi.stain.fields import TissueFields, tissue_fields
from ml.roi.stain.nuclei import MAX_MPP, nucleus_mask
from ml.types import ArrayBool, ArrayF32, ArrayF64, DisplayRange, ImageU8

STAIN_METHODS = ("nuclei", "macenko", "none")
_MIN_BRIGHTNESS = 60.0
"""Smallest median brightness of a slide in transmitted light."""


@dataclass(frozen=True, slots=True)
class StainConfig:
    """Configuration of stain estimation."""

    method: str = "nuclei"  # "nuclei" (as in the paper), "macenko", or "none"
    field_mpp: float = 1.0  # nuclei are at least five pixels wide
    fields: int = 16  # of 512 px, spread over the tissue: 4 million pixels at most
    iterations: int = 2  # nuclei are detected again with the new vectors
    purity: float = 0.9  # quantile of the angle of a pure stain; 0.5 is the median
    min_tissue_px: int = 2_000  # smallest number of tissue pixels
    min_nucleus_px: int = 400  # with fewer pixels in nuclei, Macenko's method is used
    max_brown: float = 0.03  # largest share of brown tissue pixels; more indicate an immunostain
    pixels: int = 200_000  # largest sample for vectors and quantiles


def estimate_stain(
    slide: SlideImage, *, mpp: float | None = None, config: StainConfig | None = None
) -> StainEstimate:
    """Estimate the stains of a slide from its tissue at low power.

    Args:
        slide: Open slide or still.
        mpp: Microns per level-0 pixel; None for that of the file.
        config: Method and limits.
    Returns:
        StainEstimate: Method "nuclei"; "macenko" if requested or there are too few nuclei; "none"
        with the reason if the slide is blank, not in transmitted light, immunostained or not of
        two stains.
    Raises:
        BadInputError: Unknown method.
    Source: the retrieval paper, section II (haematoxylin inside nuclei, eosin outside them and
        away from the background, Ruifrok and Johnston's deconvolution); departs from it by a
        nucleus mask without a network and by a quantile of the direction instead of its mean.
    """
    config = _validate(config)
    fields = tissue_fields(slide, mpp=mpp, field_mpp=config.field_mpp, count=config.fields)
    reason = _transmission_problem(fields.thumbnail, fields.tissue_share)
    if reason:
        return _not_normalised(fields.thumbnail, reason)
    estimate = _from_fields(list(fields.read(slide)), fields, config)
    return replace(estimate, white=fields.white)


def estimate_stain_of_image(
    image: ImageU8, *, mpp: float | None = None, config: StainConfig | None = None
) -> StainEstimate:
    """Estimate the stains of an image (H, W, 3) uint8 RGB, see ``estimate_stain``."""
    with SlideImage(_MemoryReader(checked_image(image))) as slide:
        return estimate_stain(slide, mpp=mpp, config=config)


def _from_fields(fields: list[ImageU8], where: TissueFields, config: StainConfig) -> StainEstimate:
    density = [optical_density(field, where.white) for field in fields]
    tissue = [
        _tissue_mask(od) & ~pixel_haze(field, where.white)
        for od, field in zip(density, fields, strict=True)
    ]
    stained = np.concatenate([od[m] for od, m in zip(density, tissue, strict=True)])
    pixels = _subsample(stained, config)
    sample = np.concatenate([field[m] for field, m in zip(fields, tissue, strict=True)])
    if pixels.shape[0] < config.min_tissue_px:
        return _not_normalised(
            fields[0], f"only {pixels.shape[0]} tissue pixels, {config.min_tissue_px} needed"
        )
    brown = brown_share(pixels)
    if brown > config.max_brown:
        return _not_normalised(sample, f"immunostain: {100 * brown:.0f} % of the tissue is brown")
    if config.method == "none":
        return _not_normalised(sample, "asked for")
    matrix, method, reason = _vectors(density, tissue, pixels, where.mpp, config)
    problem = rejection_reason(matrix)
    if problem:
        return _not_normalised(sample, f"{reason}; {problem}" if reason else problem)
    return _measure(matrix, pixels, method, reason)


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
        nuclear, outside = _subsample(nuclear, config), _subsample(outside, config)
        matrix = pure_directions(nuclear, outside, config.purity)
    return matrix, "nuclei", ""


def pure_directions(nuclear: ArrayF64, outside: ArrayF64, purity: float) -> ArrayF64:
    """Estimate haematoxylin from pixels in nuclei, and eosin from the others.

    Takes the quantile ``purity`` of the angle away from the other stain, in the plane of the two
    median directions. The medians are mixtures: nuclei overlap eosin, and cytoplasm has some
    haematoxylin.

    Args:
        nuclear, outside: (N, 3) and (M, 3) optical densities.
        purity: Quantile in 0.5 (the medians) to 1.
    Returns:
        (2, 3) float64 unit vectors, positive.
    """
    first, second = (_median_direction(od) for od in (nuclear, outside))
    side = second - (second @ first) * first
    length = float(np.linalg.norm(side))
    if length < 1e-6:
        return np.stack([first, second])
    plane = np.stack([first, side / length])
    angle = [np.arctan2(*(od @ plane.T).T[::-1]) for od in (nuclear, outside)]
    ends = (np.quantile(angle[0], 1 - purity), np.quantile(angle[1], purity))
    vectors = np.array([[np.cos(a), np.sin(a)] for a in ends]) @ plane
    return unit_rows(np.maximum(vectors, 1e-6))


def brown_share(od: ArrayF64) -> float:
    """Share of the pixels (N, 3) that absorb mainly blue, as DAB does."""
    brown = (od[:, 2] > 1.1 * od[:, 1]) & (od[:, 2] > 1.1 * od[:, 0]) & (od[:, 2] > 0.2)
    return float(brown.mean()) if od.size else 0.0


def _transmission_problem(thumbnail: ImageU8, tissue_share: float) -> str:
    middle = float(np.median(thumbnail.max(axis=-1)))
    if middle < _MIN_BRIGHTNESS:
        return f"dark background (half the slide below {middle:.0f} of 255): fluorescence, not H&E"
    if tissue_share < 0.001:
        return f"blank: {100 * tissue_share:.2f} % of the slide is tissue"
    return ""


def _tissue_mask(od: ArrayF32) -> ArrayBool:
    """Mask of tissue that is not too dark to have a reliable colour."""
    return np.asarray((od.max(axis=-1) > MIN_TISSUE_OD) & (od.mean(axis=-1) < 1.5))


def _nuclei(od: ArrayF32, matrix: ArrayF64, mpp: float) -> ArrayBool:
    unmix = np.linalg.pinv(matrix)[:, 0].astype(np.float32)
    return nucleus_mask(np.maximum(od @ unmix, 0), mpp=mpp).mask


def _measure(matrix: ArrayF64, pixels: ArrayF64, method: str, reason: str) -> StainEstimate:
    concentration = pixels @ np.linalg.pinv(matrix)
    quantiles = np.maximum(np.quantile(concentration, QUANTILE_LEVELS, axis=0).T, 0.0)
    scale = np.maximum(np.percentile(concentration, 99, axis=0), 0.15)
    dark = max(float(np.percentile(pixels.mean(axis=1), 99)), 0.2)
    return StainEstimate(matrix, scale, dark, method, reason, np.ascontiguousarray(quantiles))


def _not_normalised(pixels: ImageU8, reason: str) -> StainEstimate:
    return replace(published_stains(pixels, reason=reason), method="none")


def _subsample(od: ArrayF32, config: StainConfig) -> ArrayF64:
    step = max(1, -(-od.shape[0] // config.pixels))
    return od[::step].astype(np.float64)


def _median_direction(od: ArrayF64) -> ArrayF64:
    unit = od / np.linalg.norm(od, axis=1, keepdims=True)
    middle = np.median(unit, axis=0)
    return np.asarray(middle / np.linalg.norm(middle))


def _validate(config: StainConfig | None) -> StainConfig:
    config = config or StainConfig()
    if config.method not in STAIN_METHODS:
        raise BadInputError(
            f"stain method: expected one of {', '.join(STAIN_METHODS)}, got {config.method!r}"
        )
    return config


class _MemoryReader:
    """``Reader`` of an image in memory, with a single level."""

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
