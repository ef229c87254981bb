"""Layers of a mosaic: coverage, count of frames, uncertainty and times."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pyvips

from ml.geometry import FrameMaps
from ml.mosaic.alignment.canvas import MosaicCanvas, PlacedFrame
from ml.mosaic.result import MosaicLayer, component_name
from ml.types import ArrayF32, ArrayF64

TILE_PX = 256
"""Tile side of the 16-bit pyramid, as viewers expect."""

_UNITS = {"coverage": "", "count": "frames", "uncertainty": "px"}


def write_layers(
    canvas: MosaicCanvas,
    placed: tuple[PlacedFrame, ...],
    view: ArrayF64,
    folder: Path,
    *,
    size_px: tuple[int, int],
    component: int,
    layer_px: int,
) -> tuple[MosaicLayer, ...]:
    """Draw every registered frame's outline into each layer and write PNG and TIFF.

    Args:
        view: (P, 2) convex outline, frame px.
        size_px: (width, height) of the frames.
    """
    downsample = max(1.0, max(canvas.width_px, canvas.height_px) / layer_px)
    has_clock = all(frame.time_s is not None for frame in placed)
    planes = _draw_planes(
        canvas, placed, view, size_px=size_px, downsample=downsample, has_clock=has_clock
    )
    covered = planes["count"] > 0
    layers = []
    for name, values in planes.items():
        unit = _UNITS.get(name, "s" if has_clock else "frames")
        low = float(values[covered].min()) if covered.any() else 0.0
        high = float(values[covered].max()) if covered.any() else 0.0
        layer = MosaicLayer(
            name=name,
            png=component_name(f"layer-{name}", ".png", component),
            tiff=component_name(f"layer-{name}", ".tif", component),
            unit=unit,
            minimum=round(low, 4),
            maximum=round(high, 4),
            width_px=values.shape[1],
            height_px=values.shape[0],
            downsample=downsample,
        )
        _write(values, covered, layer, folder)
        layers.append(layer)
    return tuple(layers)


def scale_values(
    values: ArrayF32, covered: np.ndarray, low: float, high: float, top: int
) -> np.ndarray:
    """Values as 1 to ``top + 1``, and 0 where nothing was seen; ``top + 1`` where low is high."""
    if high <= low:
        return np.where(covered, top + 1, 0)
    share = np.clip((values.astype(np.float64) - low) / (high - low), 0, 1)
    return np.where(covered, 1 + np.rint(share * top), 0)


def _draw_planes(
    canvas: MosaicCanvas,
    placed: tuple[PlacedFrame, ...],
    view: ArrayF64,
    *,
    size_px: tuple[int, int],
    downsample: float,
    has_clock: bool,
) -> dict[str, ArrayF32]:
    shape = (
        max(1, int(np.ceil(canvas.height_px / downsample))),
        max(1, int(np.ceil(canvas.width_px / downsample))),
    )
    count = np.zeros(shape, np.float32)
    sigma = np.full(shape, np.inf, np.float32)
    first, last = np.full(shape, np.inf, np.float32), np.full(shape, -np.inf, np.float32)
    for frame in placed:
        meshes = None if frame.mesh is None else frame.mesh[None]
        maps = FrameMaps(frame.H_mosaic_from_frame[None], meshes, size_px)
        outline = (maps.to_plane(view)[0][0] + 0.5) / downsample - 0.5
        plane = np.zeros(shape, np.uint8)
        cv2.fillConvexPoly(plane, np.rint(outline * 16).astype(np.int32), 1, shift=4)
        inside = plane > 0
        time = np.float32(frame.time_s if has_clock and frame.time_s is not None else frame.index)
        count[inside] += 1
        sigma[inside] = np.minimum(sigma[inside], np.float32(frame.uncertainty_px))
        first[inside] = np.minimum(first[inside], time)
        last[inside] = np.maximum(last[inside], time)
    return {
        "coverage": (count > 0).astype(np.float32),
        "count": count,
        "uncertainty": sigma,
        "time": first,
        "time_last": last,
    }


def _write(values: ArrayF32, covered: np.ndarray, layer: MosaicLayer, folder: Path) -> None:
    values = np.where(covered, values, layer.minimum).astype(np.float32)
    small = scale_values(values, covered, layer.minimum, layer.maximum, 254).astype(np.uint8)
    _, data = cv2.imencode(".png", small)
    (folder / layer.png).write_bytes(data.tobytes())
    fine = scale_values(values, covered, layer.minimum, layer.maximum, 65534).astype(np.uint16)
    image = pyvips.Image.new_from_array(np.ascontiguousarray(fine), interpretation="grey16")
    image.tiffsave(
        str(folder / layer.tiff),
        tile=True,
        tile_width=TILE_PX,
        tile_height=TILE_PX,
        pyramid=True,
        compression="deflate",
        region_shrink="nearest",
    )
