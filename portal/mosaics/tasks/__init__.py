"""Work of mosaics. The only package here that reaches torch, and only inside its functions."""

from portal.mosaics.tasks.followups import followup_find
from portal.mosaics.tasks.mosaics import mosaic_build
from portal.mosaics.tasks.tracking import roi_track

__all__ = ["followup_find", "mosaic_build", "roi_track"]
