"""Label masks: a tiled TIFF whose pixels are the numbers of the labels."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import shapely

from portal.annotations.formats.types import ExportChoices, Plane, Rois
from portal.annotations.marks import MARKS
from portal.annotations.models import Label
from portal.core.errors import InvalidInputError

TILE_PX = 512  # a tile of one label is 256 kB before compression: little memory, few tiles
MAX_PIXELS = 16 * 10**9  # 60,000 tiles; a slide of 126,000 px square
DOWNSAMPLES = (1, 2, 4, 8, 16, 32)
_CHUNK = 2**20  # sent at once: few calls, little memory
_LEVEL = 6  # of zlib: masks are mostly one value
MAX_LABELS = 255  # all values of a byte but 0, which is no label


class _Resolution(TypedDict, total=False):
    resolution: tuple[float, float]
    resolutionunit: str


class LabelMask:
    """Mask with a byte per pixel: 0 is unlabelled, other numbers are listed in the description."""

    name, title = "mask", "Label mask (TIFF)"
    suffix, media_type = ".tif", "image/tiff"
    for_video = False

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """Rows of tiles one after the other: of the image no more than a tile is in memory.

        A pixel belongs to a region where its centre does; of regions that overlap the last drawn
        wins. Without a label a region has the number of "(no label)". Points and lines cover no
        pixel.
        """
        if plane.is_video:
            raise InvalidInputError(
                "A mask is for a single image; a video has many.", code="no-mask"
            )
        step = choices.downsample
        if step not in DOWNSAMPLES:
            raise InvalidInputError(f"downsample: one of {', '.join(map(str, DOWNSAMPLES))}.")
        width, height = -(-plane.width_px // step), -(-plane.height_px // step)
        if width * height > MAX_PIXELS:
            raise InvalidInputError(
                f"A mask of {width:,} x {height:,} pixels; {MAX_PIXELS:,} in all are allowed. "
                "Choose a larger downsample."
            )
        return _write_mask(_read(rois, step), plane, step, (width, height))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Outlines to rasterize: (N,) shapes in mask pixels, their values and the value table."""

    shapes: npt.NDArray[Any]
    values: list[int]
    table: list[dict[str, Any]]


def _read(rois: Rois, step: int) -> _Drawn:
    numbers: dict[str, int] = {}
    colors: dict[str, str | None] = {}
    shapes, of = [], []
    for roi in rois():
        if roi.shape in MARKS:
            continue  # points and lines cover no pixel
        label = roi.label if isinstance(roi.label, Label) else None
        name = label.name if label else "(no label)"
        of.append(numbers.setdefault(name, len(numbers) + 1))
        colors[name] = label.color if label else None
        shapes.append(shapely.geometry.shape(roi.geometry))
    if len(numbers) > MAX_LABELS:
        raise InvalidInputError(
            f"A mask has {MAX_LABELS} labels at most; there are {len(numbers)}."
        )
    table = [{"value": numbers[name], "label": name, "color": colors[name]} for name in numbers]
    geometries = np.array(shapes, dtype=object)
    return _Drawn(shapely.transform(geometries, lambda xy: xy / step), of, table)


def _write_mask(drawn: _Drawn, plane: Plane, step: int, size: tuple[int, int]) -> Iterator[bytes]:
    from tifffile import TiffWriter

    width, height = size
    tree = shapely.STRtree(drawn.shapes)
    empty = zlib.compress(bytes(TILE_PX * TILE_PX), _LEVEL)

    def tiles() -> Iterator[bytes]:
        for top in range(0, height, TILE_PX):
            for left in range(0, width, TILE_PX):
                window = shapely.box(left, top, left + TILE_PX, top + TILE_PX)
                indexes = np.sort(tree.query(window))
                if not len(indexes):
                    yield empty
                    continue
                tile = np.zeros((TILE_PX, TILE_PX), np.uint8)
                for index in indexes:
                    tile[filled(drawn.shapes[index], left, top, TILE_PX)] = drawn.values[index]
                yield zlib.compress(tile.tobytes(), _LEVEL)

    description = json.dumps(
        {
            "values": [{"value": 0, "label": "(none)", "color": None}, *drawn.table],
            "level0": [plane.width_px, plane.height_px],
            "downsample": step,
        }
    )
    with tempfile.NamedTemporaryFile() as file:
        with TiffWriter(file.name, bigtiff=True) as tiff:
            tiff.write(
                tiles(),
                shape=(height, width),
                dtype=np.uint8,
                tile=(TILE_PX, TILE_PX),
                compression="zlib",
                photometric="minisblack",
                description=description,
                metadata=None,
                software="Tessera",
                **_resolution(plane, step),
            )
        file.seek(0)
        while piece := file.read(_CHUNK):
            yield piece


def _resolution(plane: Plane, step: int) -> _Resolution:
    """Pixels a centimetre, where the scale is known."""
    if not (plane.mpp_x and plane.mpp_y):
        return {}
    return {
        "resolution": (1e4 / (plane.mpp_x * step), 1e4 / (plane.mpp_y * step)),
        "resolutionunit": "CENTIMETER",
    }


def filled(shape: Any, left: int, top: int, side_px: int) -> npt.NDArray[np.bool_]:
    """Pixels of a square window whose centre is inside a shape, (side_px, side_px) bool.

    Even-odd rule: in every row that an edge crosses, it toggles the pixels to its right. A pixel
    that is toggled an odd number of times is inside; this handles holes.
    """
    window = shapely.box(left - 1, top - 1, left + side_px + 1, top + side_px + 1)
    near = shapely.clip_by_rect(shape, *window.bounds) if _is_large(shape) else shape
    toggles = np.zeros((side_px, side_px + 1), np.int32)
    for part in shapely.get_parts(near):
        if part.geom_type != "Polygon" or part.is_empty:
            continue
        for ring in (part.exterior, *part.interiors):
            _toggle(toggles, shapely.get_coordinates(ring) - [left, top], side_px)
    inside: npt.NDArray[np.bool_] = np.cumsum(toggles[:, :side_px], axis=1) % 2 == 1
    return inside


def _is_large(shape: Any) -> bool:
    """Return whether clipping it first costs less than going over all of its edges for each
    tile.
    """
    return bool(shapely.get_num_coordinates(shape) > 10_000)


def _toggle(toggles: npt.NDArray[np.int32], ring: npt.NDArray[np.float64], side_px: int) -> None:
    (x0, y0), (x1, y1) = ring[:-1].T, ring[1:].T
    upper, lower = np.minimum(y0, y1), np.maximum(y0, y1)
    first = np.clip(np.ceil(upper - 0.5), 0, side_px).astype(int)
    last = np.clip(np.ceil(lower - 0.5), 0, side_px).astype(int)  # not included
    count = last - first
    edges = np.repeat(np.arange(len(count)), count)
    if not len(edges):
        return
    rows = np.arange(len(edges)) - np.repeat(np.cumsum(count) - count, count) + first[edges]
    share = (rows + 0.5 - y0[edges]) / (y1 - y0)[edges]
    x = x0[edges] + share * (x1 - x0)[edges]
    columns = np.clip(np.ceil(x - 0.5), 0, side_px).astype(int)
    np.add.at(toggles, (rows, columns), 1)
