"""The archive as programs (and the viewer) see it."""

from portal.archive.serializers.canvases import (
    CanvasCaseSerializer,
    CanvasChangeSerializer,
    CanvasSerializer,
    CanvasVideoSerializer,
    FramePageSerializer,
    LevelSerializer,
    TableFrameSerializer,
    thumbnail_url,
    tile_url,
)
from portal.archive.serializers.records import (
    CaseSerializer,
    ItemErrorSerializer,
    ItemNameSerializer,
    ItemUploadSerializer,
    SlideChangesSerializer,
    SlideSerializer,
    UploadTargetSerializer,
    VideoSerializer,
)

__all__ = [
    "CanvasCaseSerializer",
    "CanvasChangeSerializer",
    "CanvasSerializer",
    "CanvasVideoSerializer",
    "CaseSerializer",
    "FramePageSerializer",
    "ItemErrorSerializer",
    "ItemNameSerializer",
    "ItemUploadSerializer",
    "LevelSerializer",
    "SlideChangesSerializer",
    "SlideSerializer",
    "TableFrameSerializer",
    "UploadTargetSerializer",
    "VideoSerializer",
    "thumbnail_url",
    "tile_url",
]
