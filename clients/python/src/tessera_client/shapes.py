"""Outlines as GeoJSON, shapely geometries, arrays of vertices and geopandas tables.

All are in level-0 pixels of the canvas, x right, y down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tessera_client.models import Roi

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from shapely.geometry.base import BaseGeometry

VERTICES = 2  # numbers of a vertex


def geojson_of(outline: Any) -> dict[str, Any]:
    """Convert an outline to GeoJSON.

    Args:
        outline: GeoJSON, anything with ``__geo_interface__`` (shapely, geopandas), or the (N, 2)
            vertices of a polygon as an array or nested sequence.
    Raises:
        TypeError: none of these.
    """
    if isinstance(outline, Mapping):
        return dict(outline)
    if hasattr(outline, "__geo_interface__"):
        return dict(outline.__geo_interface__)
    try:
        ring = [[float(number) for number in vertex] for vertex in outline]
    except (TypeError, ValueError):
        ring = []
    if len(ring) <= VERTICES or any(len(vertex) != VERTICES for vertex in ring):
        raise TypeError(
            "outline: expected GeoJSON, a shapely geometry, or the (N, 2) vertices of a polygon"
        )
    if ring[0] != ring[-1]:
        ring.append(ring[0])
    return {"type": "Polygon", "coordinates": [ring]}


def shape_of(roi: Roi | Mapping[str, Any]) -> BaseGeometry:
    """Convert an ROI, or GeoJSON, to a shapely geometry.

    Raises:
        ImportError: shapely is not installed (``tessera-client[shapes]``).
        ValueError: the ROI was listed without its outline.
    """
    from shapely.geometry import shape

    geometry = roi.geometry if isinstance(roi, Roi) else roi
    if geometry is None:
        raise ValueError("this ROI was listed without its outline: ask for it by its id")
    return shape(dict(geometry))


def table_of(rois: Iterable[Roi]) -> GeoDataFrame:
    """Convert ROIs to a geopandas table: one ROI in each row, its outline as the geometry.

    Raises:
        ImportError: geopandas is not installed (``tessera-client[tables]``).
    """
    from geopandas import GeoDataFrame

    listed = list(rois)
    columns = ("id", "canvas", "label", "name", "shape", "review_state", "version", "area_px")
    rows = {column: [getattr(roi, column) for roi in listed] for column in (*columns, "area_um2")}
    return GeoDataFrame(rows, geometry=[shape_of(roi) for roi in listed])
