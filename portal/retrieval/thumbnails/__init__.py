"""Small pictures: of ROIs with their outlines, and of what is searched with."""

from portal.retrieval.thumbnails.queries import query_picture, query_scale
from portal.retrieval.thumbnails.regions import (
    HEIGHT_PX,
    LARGE,
    PICTURES,
    SMALL,
    WIDTH_PX,
    Picture,
    Scale,
    roi_thumbnail,
    scale_of,
    window_of,
)

__all__ = [
    "HEIGHT_PX",
    "LARGE",
    "PICTURES",
    "SMALL",
    "WIDTH_PX",
    "Picture",
    "Scale",
    "query_picture",
    "query_scale",
    "roi_thumbnail",
    "scale_of",
    "window_of",
]
