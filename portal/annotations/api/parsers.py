"""Bodies with geometry: NaN passes the parser, so that the refusal can name its vertex."""

from __future__ import annotations

from portal.core.api.parsers import BoundedJsonParser


class GeometryJsonParser(BoundedJsonParser):
    """``application/json`` with NaN and Infinity."""

    allows_nan = True


class GeoJsonParser(GeometryJsonParser):
    """The same for ``application/geo+json``."""

    media_type = "application/geo+json"
