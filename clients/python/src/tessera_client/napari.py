"""Reader for napari: the address of a slide, still image or mosaic as layers.

``tessera://HOST/canvases/ID``, or the address of the viewer's page. ``TESSERA_URL`` is the
portal's address, and ``TESSERA_TOKEN`` the token, which is sent to no other host.
napari itself is not needed here: layers are its plain tuples of data, settings and kind.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import DTypeLike, NDArray
from PIL import Image

from tessera_client.errors import TesseraError
from tessera_client.models import Canvas, Level
from tessera_client.sync import Client

Layer = tuple[Any, dict[str, Any], str]
Pixels = NDArray[np.uint8]

ADDRESS = re.compile(
    r"(?:tessera|https?)://(?P<host>[^/?#]+)/(?:[^?#]*/)?canvases/(?P<id>[0-9a-f-]{36})(?:[/?#].*)?",
    re.IGNORECASE,
)
MAX_REQUESTS = 6  # requests: as many as a browser has under way to one host
MAX_CACHED_TILES = 512  # decoded; 100 MB where tiles are 256 px
NO_LABEL = "#ffff00"
LINE_WIDTHS_PER_SIDE = 1500
"""Widths of a line in the image's longer side: napari counts them in level-0 pixels."""


def get_reader(path: str | Sequence[str]) -> Callable[[str], list[Layer]] | None:
    """Return the reader of an address; None if it is not that of a canvas."""
    return read if isinstance(path, str) and ADDRESS.fullmatch(path) else None


def read(path: str) -> list[Layer]:
    """Read the layers of a canvas: its pixels, then outlines and points if it has any.

    Raises:
        TesseraError: a request failed; the address, ``TESSERA_URL`` or ``TESSERA_TOKEN`` is
            invalid; or the canvas is a video.
    """
    url, token = os.environ.get("TESSERA_URL", ""), os.environ.get("TESSERA_TOKEN", "")
    if not url or not token:
        raise TesseraError("Set TESSERA_URL and TESSERA_TOKEN before napari is started.")
    found = ADDRESS.fullmatch(path)
    if found is None:
        raise TesseraError(f"{path}: expected tessera://HOST/canvases/ID")
    if found["host"].lower() != urlsplit(url).netloc.lower():
        raise TesseraError(f"{path}: the token is for {url}, not for {found['host']}")
    tessera = Client(url, token)
    canvas = tessera.canvas(found["id"].lower())
    if not canvas.levels:
        raise TesseraError(f"{canvas.name}: a {canvas.kind} has no tiles for napari to show")
    regions = tessera.get(f"canvases/{canvas.id}/roi-file/", format="geojson")["features"]
    return [_image(tessera, canvas), *_outlines(canvas, regions), *_points(canvas, regions)]


class TiledLevel:
    """A level of a pyramid as a lazy array (height, width, 3) uint8: indexing fetches tiles.

    Args:
        tile: the pixels of the tile in a column and row.
        each: ``map``, or one that uses several threads.
    """

    dtype, ndim = np.dtype(np.uint8), 3

    def __init__(
        self, level: Level, tile: Callable[[int, int], Pixels], map_tiles: Any = map
    ) -> None:
        self._level, self._tile, self._map_tiles = level, tile, map_tiles
        self.shape = (level.height, level.width, 3)
        self.size = level.height * level.width * 3

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[...], dtype=dtype)

    def __getitem__(self, key: Any) -> Pixels:
        """Index with numbers, slices and an ellipsis, as in an array."""
        index = list(key) if isinstance(key, tuple) else [key]
        at = next((i for i, one in enumerate(index) if one is Ellipsis), None)
        if at is not None:
            index[at : at + 1] = [slice(None)] * (self.ndim + 1 - len(index))
        index += [slice(None)] * (self.ndim - len(index))
        ys, xs = (np.arange(size)[one] for size, one in zip(self.shape, index[:2], strict=False))
        if not ys.size or not xs.size:
            return np.zeros((*ys.shape, *xs.shape, 3), np.uint8)[..., index[2]]
        left, top = int(xs.min()), int(ys.min())
        box = self._box(left, top, int(xs.max()) + 1, int(ys.max()) + 1)
        found: Pixels = box.take(ys - top, axis=0).take(xs - left, axis=ys.ndim)
        return found[..., index[2]]

    def _box(self, left: int, top: int, right: int, bottom: int) -> Pixels:
        wide, high = self._level.tile_width, self._level.tile_height
        places = [
            (column, row)
            for row in range(top // high, -(-bottom // high))
            for column in range(left // wide, -(-right // wide))
        ]
        box = np.zeros((bottom - top, right - left, 3), np.uint8)
        tiles = self._map_tiles(lambda place: self._tile(*place), places)
        for (column, row), tile in zip(places, tiles, strict=True):
            x, y = column * wide - left, row * high - top  # of the tile's corner, within the box
            part = tile[max(-y, 0) : bottom - top - y, max(-x, 0) : right - left - x]
            box[max(y, 0) :, max(x, 0) :][: part.shape[0], : part.shape[1]] = part
        return box


def _image(tessera: Client, canvas: Canvas) -> Layer:
    @lru_cache(MAX_CACHED_TILES)
    def tile(z: int, x: int, y: int) -> Pixels:
        return np.asarray(Image.open(BytesIO(tessera.tile(canvas, z, x, y))).convert("RGB"))

    def of(z: int) -> Callable[[int, int], Pixels]:
        return lambda x, y: tile(z, x, y)

    map_tiles = ThreadPoolExecutor(MAX_REQUESTS).map
    last = len(canvas.levels) - 1  # z 0 is the coarsest level, the first of the list the finest
    levels = [TiledLevel(level, of(last - i), map_tiles) for i, level in enumerate(canvas.levels)]
    options = {"multiscale": True, "rgb": True, "contrast_limits": (0, 255)}
    return levels, _layer_options(canvas, canvas.name) | options, "image"


def _layer_options(canvas: Canvas, name: str) -> dict[str, Any]:
    """Name, place of origin and, where the scale is known, the size of a pixel in micrometres."""
    options: dict[str, Any] = {"name": name, "metadata": {"tessera_canvas": canvas.id}}
    if canvas.mpp_x and canvas.mpp_y:
        options |= {"scale": (canvas.mpp_y, canvas.mpp_x), "units": ("um", "um")}
    return options


def _outlines(canvas: Canvas, regions: Sequence[Mapping[str, Any]]) -> Iterator[Layer]:
    """One shape for each part of an ROI; a line there and back joins a hole to its outline."""
    drawn = [(region, *part) for region in regions for part in _parts(region["geometry"])]
    if drawn:
        yield (
            [_yx(xy) for _, _, xy in drawn],
            _layer_options(canvas, "ROIs")
            | _shape_options([region for region, _, _ in drawn], "edge_color")
            | {
                "shape_type": [kind for _, kind, _ in drawn],
                "edge_width": _line(canvas),
                "face_color": "transparent",
                "text": {"string": "{name}", "anchor": "upper_left"},
            },
            "shapes",
        )


def _points(canvas: Canvas, regions: Sequence[Mapping[str, Any]]) -> Iterator[Layer]:
    drawn = []
    for region in regions:
        kind, xy = region["geometry"]["type"], region["geometry"]["coordinates"]
        if kind in {"Point", "MultiPoint"}:
            drawn += [(region, one) for one in ([xy] if kind == "Point" else xy)]
    if drawn:
        shape_options = _shape_options([region for region, _ in drawn], "face_color")
        options = _layer_options(canvas, "Points") | shape_options | {"size": 4 * _line(canvas)}
        yield _yx([xy for _, xy in drawn]), options, "points"


def _parts(geometry: Mapping[str, Any]) -> Iterator[tuple[str, list[list[float]]]]:
    """Polygons and paths, each as its (x, y) vertices."""
    kind, xy = geometry["type"], geometry["coordinates"]
    if kind in {"Polygon", "MultiPolygon"}:
        for first, *holes in [xy] if kind == "Polygon" else xy:
            bridged = [vertex for hole in holes for vertex in (*hole, first[0])]
            yield "polygon", [*first, *bridged] if holes else first[:-1]
    elif kind in {"LineString", "MultiLineString"}:
        for line in [xy] if kind == "LineString" else xy:
            yield "path", line


def _shape_options(regions: Sequence[Mapping[str, Any]], color_of: str) -> dict[str, Any]:
    """Columns of napari's table of features, and a colour for each region."""
    properties = [region["properties"] for region in regions]
    classes = [one.get("classification") or {} for one in properties]
    return {
        "features": {
            "id": [region["id"] for region in regions],
            "name": [one.get("name", "") for one in properties],
            "label": [one.get("name") or ": ".join(one.get("names", ())) for one in classes],
        },
        color_of: ["#{:02x}{:02x}{:02x}".format(*c["color"]) if c else NO_LABEL for c in classes],
    }


def _line(canvas: Canvas) -> float:
    return max(1.0, max(canvas.width, canvas.height) / LINE_WIDTHS_PER_SIDE)


def _yx(xy: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    return np.asarray(xy, np.float64)[:, 1::-1]
