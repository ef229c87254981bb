"""Fields of tissue spread over a slide, read once at low power to learn its stains from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from ml.imaging.slides import SlideImage
from ml.roi.geometry import downsample_for
from ml.roi.patches import isotropic_mpp
from ml.roi.stain.deconvolution import WHITE, White, optical_density
from ml.types import ArrayBool, ImageU8

THUMBNAIL_PX = 1_024  # a pixel is some 50 um of a whole slide: tissue shows
FIELD_PX = 512  # two patches wide: few nuclei are cut by its edge
TISSUE_OD = 0.06
"""Darkest channel from which a pixel is tissue: the same limit as ``features.tissue_share``."""
_GLASS_SHARE, _GLASS_MIN, _GLASS_TINT = 0.02, 170.0, 60.0
"""Share of the pixels taken as brightest, and what their darkest channel and tint may be."""


@dataclass(frozen=True, slots=True)
class TissueFields:
    """Where the tissue of a slide is, at low power.

    Attributes:
        thumbnail: (h, w, 3) uint8 RGB.
        tissue_share: of the thumbnail.
        corners_l0: (left, top) of the fields chosen, most tissue first, level-0 pixels.
        size_l0: (width, height) of each.
        out_px: (width, height) that each is read at.
        white: RGB of the empty glass, tinted on many scanners.
        mpp: microns per pixel of what is read; where the file does not say, the scale that
            ``geometry.downsample_for`` assumes.
    """

    thumbnail: ImageU8
    tissue_share: float
    corners_l0: tuple[tuple[float, float], ...]
    size_l0: tuple[float, float]
    out_px: tuple[int, int]
    white: White
    mpp: float

    def read(self, slide: SlideImage) -> Iterator[ImageU8]:
        """The fields, one at a time: memory holds one."""
        for corner in self.corners_l0:
            yield slide.read_region(corner, self.size_l0, self.out_px)


def tissue_fields(
    slide: SlideImage, *, mpp: float | None, field_mpp: float, count: int
) -> TissueFields:
    """Choose the fields with most tissue, spread over the slide; the same for the same slide.

    Args:
        slide: open slide or still.
        mpp: microns per level-0 pixel; None takes what the file says.
        field_mpp: microns per pixel of the fields.
        count: at most this many fields.
    """
    info = slide.info
    known = mpp if mpp is not None else isotropic_mpp(info.mpp_x, info.mpp_y)
    downsample = downsample_for(
        mpp=known,
        target_mpp=field_mpp,
        patch_px=224,
        width_px=info.width_px,
        height_px=info.height_px,
    )
    thumbnail = slide.thumbnail(THUMBNAIL_PX)
    white = glass_colour(thumbnail)
    tissue = tissue_mask(thumbnail, white)
    size_l0 = tuple(min(FIELD_PX * downsample, side) for side in (info.width_px, info.height_px))
    out_px = tuple(max(1, round(side / downsample)) for side in size_l0)
    corners = _corners(tissue, (info.width_px, info.height_px), (size_l0[0], size_l0[1]), count)
    return TissueFields(
        thumbnail,
        float(tissue.mean()),
        corners,
        (size_l0[0], size_l0[1]),
        (out_px[0], out_px[1]),
        white,
        known * downsample if known is not None else field_mpp,
    )


def glass_colour(thumbnail: ImageU8) -> White:
    """RGB of the empty glass: the median of the brightest pixels where those are nearly grey.

    Where the slide shows no glass (its brightest pixels are coloured or dim) it is ``WHITE``.
    """
    smooth = cv2.blur(thumbnail, (3, 3)).reshape(-1, 3)
    darkest = smooth.min(axis=1)
    bright = smooth[darkest >= np.quantile(darkest, 1 - _GLASS_SHARE)]
    red, green, blue = (float(v) for v in np.median(bright, axis=0))
    if (
        min(red, green, blue) < _GLASS_MIN
        or max(red, green, blue) - min(red, green, blue) > _GLASS_TINT
    ):
        return (WHITE, WHITE, WHITE)
    return (red, green, blue)


def tissue_mask(image: ImageU8, white: White) -> ArrayBool:
    """(H, W) bool: darker than glass in some channel, specks of dust taken out."""
    dark = optical_density(image, white).max(axis=-1) > TISSUE_OD
    opened = cv2.medianBlur(dark.astype(np.uint8), 5) if min(image.shape[:2]) > 5 else dark
    return np.asarray(opened, bool)


def _corners(
    tissue: ArrayBool, size_l0: tuple[int, int], field_l0: tuple[float, float], count: int
) -> tuple[tuple[float, float], ...]:
    """Corners of the cells of a grid of fields that hold most tissue, evenly among those."""
    columns, rows = (max(1, round(s / f)) for s, f in zip(size_l0, field_l0, strict=True))
    share = cv2.resize(
        tissue.astype(np.float32), (columns, rows), interpolation=cv2.INTER_AREA
    ).ravel()
    full = np.flatnonzero(share >= min(0.5, 0.8 * share.max(initial=0.0)))
    full = full[share[full] > 0]
    spread = full[np.linspace(0, full.size - 1, min(count, full.size)).round().astype(int)]
    best_first = spread[np.argsort(-share[spread], kind="stable")]
    step_x = (size_l0[0] - field_l0[0]) / max(1, columns - 1)
    step_y = (size_l0[1] - field_l0[1]) / max(1, rows - 1)
    return tuple(
        (float(cell % columns * step_x), float(cell // columns * step_y)) for cell in best_first
    )
