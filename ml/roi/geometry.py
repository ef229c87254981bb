"""Validation of the polygon of a region, and the scale at which it is read."""

from __future__ import annotations

import math

import shapely
from shapely.geometry import MultiPolygon, Polygon, box
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError, EmptyRegionError, InvalidGeometryError

ASSUMED_MPP = 0.5
"""Default resolution if it is unknown: a 20x scan, the most common in archives."""
MAX_UPSAMPLING = 2.0  # more gives no further detail
MAX_DOWNSAMPLE = 64.0  # more indicates an error in the file

Region = Polygon | MultiPolygon


def checked_region(polygon: BaseGeometry | None, *, width_px: int, height_px: int) -> Region:
    """Repair a polygon and clip it to the image; None gives the image rectangle.

    Args:
        polygon: Polygon or MultiPolygon in level-0 pixels, or None.
        width_px, height_px: Size of level 0.
    Raises:
        InvalidGeometryError: Another type, empty, or a coordinate that is not finite.
        EmptyRegionError: No part is inside the image.
    """
    canvas = box(0, 0, width_px, height_px)
    if polygon is None:
        return canvas
    if not isinstance(polygon, Polygon | MultiPolygon):
        kind = getattr(polygon, "geom_type", type(polygon).__name__)
        raise InvalidGeometryError(f"expected a Polygon or MultiPolygon, got {kind}")
    if polygon.is_empty:
        raise InvalidGeometryError("the polygon is empty")
    if not all(math.isfinite(c) for c in shapely.get_coordinates(polygon).ravel()):
        raise InvalidGeometryError("the polygon has a coordinate that is not a finite number")
    valid = polygon if polygon.is_valid else shapely.make_valid(polygon)
    clipped = _areas(shapely.intersection(valid, canvas))
    if clipped.is_empty or clipped.area <= 0:
        raise EmptyRegionError(
            f"the region lies outside the image of {width_px} x {height_px} px, or has no area "
            f"(its bounds are {[round(b) for b in polygon.bounds]})"
        )
    return clipped


def downsample_for(
    *, mpp: float | None, target_mpp: float, patch_px: int, width_px: int, height_px: int
) -> float:
    """Number of level-0 pixels per pixel of the encoder.

    ``target_mpp / mpp``, clipped to 1/2 to 64. If ``mpp`` is unknown, a 20x scan (0.5 um/px) is
    assumed, unless the image is smaller than a patch at that scale: then 1.

    Args:
        mpp: Microns per level-0 pixel, or None.
        target_mpp: Microns per pixel of the encoder.
        patch_px: Side of a patch in pixels of the encoder.
        width_px, height_px: Size of level 0.
    Raises:
        BadInputError: ``mpp`` is not a positive number.
    """
    if mpp is not None:
        if not (math.isfinite(mpp) and mpp > 0):
            raise BadInputError(f"mpp: expected a positive number of microns, got {mpp}")
        return min(max(target_mpp / mpp, 1 / MAX_UPSAMPLING), MAX_DOWNSAMPLE)
    assumed = target_mpp / ASSUMED_MPP
    return assumed if min(width_px, height_px) >= assumed * patch_px else 1.0


def _areas(geometry: BaseGeometry) -> Region:
    """Polygons of a repaired or intersected geometry."""
    if isinstance(geometry, Polygon | MultiPolygon):
        return geometry
    parts = [p for p in shapely.get_parts(geometry) if isinstance(p, Polygon | MultiPolygon)]
    merged = shapely.union_all(parts) if parts else Polygon()
    return merged if isinstance(merged, Polygon | MultiPolygon) else Polygon()
