"""Fields of tissue of a slide at low power, for stain estimation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from ml.imaging.slides.slide import SlideImage
from ml.imaging.tissue.glass import glass_colour, tissue_mask
from ml.imaging.tissue.optical_density import White
from ml.roi.geometry import downsample_for
from ml.roi.patches import isotropic_mpp
from ml.types import ArrayBool, ImageU8

THUMBNAIL_PX = 1_024  # a pixel is about 50 um of a slide
FIELD_PX = 512  # few nuclei are cut by the edge


@dataclass(frozen=True, slots=True)
class TissueFields:
    """Tissue of a slide at low power, and fields chosen in it.

    Attributes:
        thumbnail: (h, w, 3) uint8 RGB.
        tissue_share: Share of tissue in the thumbnail.
        corners_l0: (left, top) of the fields in level-0 pixels, largest share of tissue first.
        size_l0: (width, height) of a field in level-0 pixels.
        out_px: (width, height) of a field as read.
        white: RGB of empty glass, tinted on many scanners.
        mpp: Microns per pixel as read; the default of ``geometry.downsample_for`` if unknown.
    """

    thumbnail: ImageU8
    tissue_share: float
    corners_l0: tuple[tuple[float, float], ...]
    size_l0: tuple[float, float]
    out_px: tuple[int, int]
    white: White
    mpp: float

    def read(self, slide: SlideImage) -> Iterator[ImageU8]:
        """Read the fields one by one."""
        for corner in self.corners_l0:
            yield slide.read_region(corner, self.size_l0, self.out_px)


def tissue_fields(
    slide: SlideImage, *, mpp: float | None, field_mpp: float, count: int
) -> TissueFields:
    """Choose fields with tissue, spread over the slide; deterministic.

    Args:
        slide: Open slide or still.
        mpp: Microns per level-0 pixel; None for that of the file.
        field_mpp: Microns per pixel of the fields.
        count: Largest number of fields.
    """
    info = slide.info
    slide_mpp = mpp if mpp is not None else isotropic_mpp(info.mpp_x, info.mpp_y)
    downsample = downsample_for(
        mpp=slide_mpp,
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
        slide_mpp * downsample if slide_mpp is not None else field_mpp,
    )


def _corners(
    tissue: ArrayBool, size_l0: tuple[int, int], field_l0: tuple[float, float], count: int
) -> tuple[tuple[float, float], ...]:
    """Corners of an even selection of the grid cells with most tissue."""
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
