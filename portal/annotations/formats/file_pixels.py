"""Pixels of a video's file and of its canvas: CVAT and COCO count those of the file.

A canvas has square pixels. Other tools draw on the frames as they are stored (upright, not
stretched), which are narrower or lower where the file's pixels are not square.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from portal.annotations.formats.types import Plane, Rois
from portal.annotations.geometry import DECIMALS
from portal.annotations.models import Roi
from portal.annotations.qupath import Feature

Scale = tuple[float, float]


def plane_drawn_on(plane: Plane, sizes: Iterable[tuple[object, ...]] = ()) -> Plane:
    """The plane in whose pixels a document was drawn: the file's, unless it states the canvas's.

    Args:
        sizes: width and height of the images that the document describes.
    """
    if plane.file_size is None:
        return plane
    distinct_sizes = set(sizes)
    if (
        plane.file_size not in distinct_sizes
        and (plane.width_px, plane.height_px) in distinct_sizes
    ):
        return plane
    width, height = plane.file_size
    return replace(plane, width_px=width, height_px=height)


def features_on_canvas(features: Iterable[Any], drawn_on: Plane, plane: Plane) -> Iterator[Any]:
    """Features of a document in the pixels of the canvas; problems stay as they are."""
    scale = _scale(drawn_on, plane)
    for feature in features:
        yield (
            _to_canvas(feature, scale)
            if isinstance(feature, Feature) and scale != (1, 1)
            else feature
        )


def rois_in_file(rois: Rois, plane: Plane) -> Rois:
    """Copies of regions, never saved, in the pixels of ``plane_drawn_on(plane)``."""
    scale = _scale(plane, plane_drawn_on(plane))
    return rois if scale == (1, 1) else lambda: (_to_file(roi, scale) for roi in rois())


def _scale(from_plane: Plane, to_plane: Plane) -> Scale:
    return to_plane.width_px / from_plane.width_px, to_plane.height_px / from_plane.height_px


def _to_canvas(feature: Feature, scale: Scale) -> Feature:
    track = feature.track
    if isinstance(track, list):
        track = [_scaled_key(key, scale) for key in track]
    return replace(feature, geometry=_scale_geometry(feature.geometry, scale), track=track)


def _to_file(roi: Roi, scale: Scale) -> Roi:
    x, y = scale
    scaled = copy.copy(roi)
    scaled.geometry = _scale_geometry(roi.geometry, scale)
    scaled.track = [_scaled_key(key, scale) for key in roi.track]
    scaled.left, scaled.right = roi.left * x, roi.right * x
    scaled.top, scaled.bottom = roi.top * y, roi.bottom * y
    scaled.area_px = round(roi.area_px * x * y, DECIMALS)
    return scaled


def _scaled_key(key: Any, scale: Scale) -> Any:
    return {**key, "geometry": _scale_geometry(key["geometry"], scale)}


def _scale_geometry(geometry: Any, scale: Scale) -> Any:
    """A GeoJSON geometry, or None; what is no pair of numbers stays for the check of outlines."""
    if not isinstance(geometry, dict):
        return geometry
    return {**geometry, "coordinates": _scaled_points(geometry.get("coordinates"), scale)}


def _scaled_points(points: Any, scale: Scale) -> Any:
    if not isinstance(points, list | tuple):
        return points
    if len(points) == 2 and all(isinstance(value, int | float) for value in points):
        return [
            round(value * factor, DECIMALS) for value, factor in zip(points, scale, strict=True)
        ]
    return [_scaled_points(part, scale) for part in points]
