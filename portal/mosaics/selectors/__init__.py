"""Reads of mosaics."""

from portal.mosaics.selectors.components import component_of
from portal.mosaics.selectors.followups import KINDS, followup_job, followup_targets
from portal.mosaics.selectors.frames import (
    frame_columns,
    frame_runs,
    mosaic_frames,
    mosaic_report,
    reasons_of,
    runs_lost,
)
from portal.mosaics.selectors.frames_at_point import FrameAtPoint, frames_at_point
from portal.mosaics.selectors.mosaics import (
    build_estimate,
    mosaic_get,
    mosaic_jobs,
    mosaic_list,
    mosaic_of_canvas,
    span_frames,
)
from portal.mosaics.selectors.projection import (
    frames_of_roi,
    projected_geometry,
    rois_in_frame,
    rois_on_component,
)

__all__ = [
    "KINDS",
    "FrameAtPoint",
    "build_estimate",
    "component_of",
    "followup_job",
    "followup_targets",
    "frame_columns",
    "frame_runs",
    "frames_at_point",
    "frames_of_roi",
    "mosaic_frames",
    "mosaic_get",
    "mosaic_jobs",
    "mosaic_list",
    "mosaic_of_canvas",
    "mosaic_report",
    "projected_geometry",
    "reasons_of",
    "rois_in_frame",
    "rois_on_component",
    "runs_lost",
    "span_frames",
]
