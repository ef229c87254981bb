"""Pixels around a region of a data set."""

from __future__ import annotations

from dataclasses import dataclass

from shapely import affinity
from shapely.geometry.base import BaseGeometry

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.imaging.slides.slide import open_slide
from ml.roi.geometry import ASSUMED_MPP, checked_region
from ml.roi.patches import isotropic_mpp
from ml.types import ImageU8

_MAX_SIDE_PX = 4096
"""Longest side of a region; larger ones are scaled down."""

_MARGIN_PX = 256
"""Margin around a region: more than half a patch at 20x."""


@dataclass(frozen=True, slots=True)
class RegionImage:
    """Pixels around one region.

    Attributes:
        pixels: (H, W, 3) uint8 RGB.
        polygon: in pixels of ``pixels``; None for all of it.
        mpp: microns per pixel of ``pixels``, None if unknown.
    """

    pixels: ImageU8
    polygon: BaseGeometry | None
    mpp: float | None


def region_image(record: RoiRecord) -> RegionImage:
    """Read a region with a margin for its border patches; larger than 4096 px is scaled down."""
    with open_slide(record.image) as slide:
        info = slide.info
        mpp = record.mpp if record.mpp is not None else isotropic_mpp(info.mpp_x, info.mpp_y)
        width, height = info.width_px, info.height_px
        region = checked_region(record.geometry, width_px=width, height_px=height)
        left, top, right, bottom = region.bounds
        left, top = max(left - _MARGIN_PX, 0), max(top - _MARGIN_PX, 0)
        right, bottom = min(right + _MARGIN_PX, width), min(bottom + _MARGIN_PX, height)
        downsample = max(1.0, max(right - left, bottom - top) / _MAX_SIDE_PX)
        pixels = slide.read_scaled((left, top), (right - left, bottom - top), downsample)
    if downsample > 1:
        mpp = (mpp or ASSUMED_MPP) * downsample
    if record.geometry is None:
        return RegionImage(pixels, None, mpp)
    moved = affinity.translate(region, -left, -top)
    return RegionImage(
        pixels, affinity.scale(moved, 1 / downsample, 1 / downsample, origin=(0, 0)), mpp
    )
