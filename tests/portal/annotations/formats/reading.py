"""Two planes, and documents read onto them."""

from __future__ import annotations

import io
import uuid
from typing import Any

from portal.annotations.formats.registry import reader_of
from portal.annotations.formats.types import Plane
from portal.annotations.geometry import shape_from_geojson
from portal.annotations.qupath import Feature

SLIDE = Plane(uuid.UUID(int=1), "Section 1.svs", 1000, 800, 0.5, 0.5)
VIDEO = Plane(uuid.UUID(int=2), "Sweep", 1000, 800, None, None, is_video=True)


def read(text: str | bytes, plane: Plane = SLIDE) -> list[Any]:
    data = text.encode() if isinstance(text, str) else text
    reader = reader_of(io.BytesIO(data))
    return list(reader.read(io.BytesIO(data), plane))


def area(feature: Feature) -> float:
    return shape_from_geojson(feature.geometry, width_px=1000, height_px=800).area_px
