"""Reads of the archive."""

from portal.archive.selectors.canvases import canvas_get, canvas_list, canvas_video
from portal.archive.selectors.cases import (
    case_facets,
    case_get,
    case_holding,
    case_list,
    case_names,
    case_search,
    case_tagged,
    with_thumbnails,
)
from portal.archive.selectors.frames import frame_etag, frame_jpeg, frame_page, frame_table
from portal.archive.selectors.items import (
    ItemCard,
    item_cards,
    item_get,
    slide_list,
    video_get,
    video_list,
)
from portal.archive.selectors.sharing import (
    share_get,
    share_list,
    share_seen,
    shared_count,
    shares_given,
    shares_of_case,
    shares_received,
)

__all__ = [
    "ItemCard",
    "canvas_get",
    "canvas_list",
    "canvas_video",
    "case_facets",
    "case_get",
    "case_holding",
    "case_list",
    "case_names",
    "case_search",
    "case_tagged",
    "frame_etag",
    "frame_jpeg",
    "frame_page",
    "frame_table",
    "item_cards",
    "item_get",
    "share_get",
    "share_list",
    "share_seen",
    "shared_count",
    "shares_given",
    "shares_of_case",
    "shares_received",
    "slide_list",
    "video_get",
    "video_list",
    "with_thumbnails",
]
