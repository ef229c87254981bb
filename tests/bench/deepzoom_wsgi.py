"""The alternatives of the HTTP benchmark: DeepZoomGenerator, and raw pass-through with no check."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import openslide
from openslide.deepzoom import DeepZoomGenerator

from ml.imaging.slides.tiles import TileSource

_PATH = os.environ["TESSERA_BENCH_SLIDE"]
_local = threading.local()
_source = TileSource(_PATH)


def _zoom() -> DeepZoomGenerator:
    if not hasattr(_local, "zoom"):
        _local.zoom = DeepZoomGenerator(openslide.OpenSlide(_PATH), tile_size=256, overlap=0)
    return _local.zoom


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """``/deepzoom/x/y`` and ``/raw/x/y`` of the finest level."""
    _, way, column, row = environ["PATH_INFO"].split("/")
    if way == "raw":
        data = _source.tile(0, int(column), int(row)).data
    else:
        zoom = _zoom()
        buffer = io.BytesIO()
        zoom.get_tile(zoom.level_count - 1, (int(column), int(row))).save(
            buffer, "JPEG", quality=85
        )
        data = buffer.getvalue()
    start_response("200 OK", [("Content-Type", "image/jpeg"), ("Content-Length", str(len(data)))])
    return (data,)
