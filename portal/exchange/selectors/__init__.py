"""Reads for other systems."""

from portal.exchange.selectors.canvases import case_canvases, image_get, roi_page
from portal.exchange.selectors.events import Stretch, Wanted, event_latest, event_stretch

__all__ = [
    "Stretch",
    "Wanted",
    "case_canvases",
    "event_latest",
    "event_stretch",
    "image_get",
    "roi_page",
]
