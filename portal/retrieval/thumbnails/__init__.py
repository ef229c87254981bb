"""Small pictures: of ROIs with their outlines, and of what is searched with."""

from portal.retrieval.thumbnails.frozen import report_keep
from portal.retrieval.thumbnails.queries import (
    query_picture,
    query_region,
    query_scale,
    query_window,
)
from portal.retrieval.thumbnails.regions import (
    CLOSE,
    HEIGHT_PX,
    LARGE,
    PICTURES,
    SMALL,
    WIDTH_PX,
    Scale,
    ThumbnailSize,
    Window,
    roi_thumbnail,
    scale_of,
    thumbnail_is_kept,
    window_of,
)

__all__ = [
    "CLOSE",
    "HEIGHT_PX",
    "LARGE",
    "PICTURES",
    "SMALL",
    "WIDTH_PX",
    "Scale",
    "ThumbnailSize",
    "Window",
    "query_picture",
    "query_region",
    "query_scale",
    "query_window",
    "report_keep",
    "roi_thumbnail",
    "scale_of",
    "thumbnail_is_kept",
    "window_of",
]
