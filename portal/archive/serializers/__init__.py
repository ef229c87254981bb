"""The archive as programs (and the viewer) see it."""

from portal.archive.serializers.canvases import (
    CanvasCaseSerializer,
    CanvasScaleSerializer,
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
    "CanvasScaleSerializer",
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
