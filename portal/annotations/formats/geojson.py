"""GeoJSON as QuPath reads and writes it: the one format that keeps everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from portal.annotations.documents import features_read
from portal.annotations.formats.sniffing import first_key
from portal.annotations.formats.types import ExportChoices, Plane, Rois
from portal.annotations.qupath import document_write, feature_write

_KEYS = ("type", "features", "crs", "bbox", "geometry", "properties", "id", "name")


class GeoJson:
    """QuPath 0.5 - 0.7, both ways."""

    name, title = "geojson", "GeoJSON (QuPath)"
    suffix, media_type = ".geojson", "application/geo+json"
    for_video = True

    def sniff(self, head: bytes) -> bool:
        """A bare array, or an object that begins as GeoJSON does."""
        return head[:1] == b"[" or first_key(head) in _KEYS

    def read(self, stream: IO[bytes], plane: Plane) -> Iterator[Any]:
        """Features in the order of the document."""
        return features_read(stream)

    def image_decided(self, stream: IO[bytes], plane: Plane) -> str:
        """Return nothing: the format names no image."""
        return ""

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """A FeatureCollection; frames of a video are planes ``t``."""
        features = (feature_write(roi, mpp_x=plane.mpp_x, mpp_y=plane.mpp_y) for roi in rois())
        for text in document_write(features):
            yield text.encode()
