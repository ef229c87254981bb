"""Writes of mosaics."""

from portal.mosaics.services.followups import (
    FOLLOWUP_KIND,
    followup_create,
    followup_job_ended,
    followup_ready,
    followups_follow_title,
)
from portal.mosaics.services.mosaics import (
    JOB_KIND,
    component_ids,
    frame_id,
    mosaic_create,
    mosaic_job_ended,
    mosaic_ready,
    mosaic_refused,
    mosaics_follow_title,
)
from portal.mosaics.services.removal import (
    mosaic_delete,
    mosaics_binned,
    mosaics_purge,
    mosaics_restored,
)
from portal.mosaics.services.states import state_again
from portal.mosaics.services.tracking import TRACK_KIND, roi_track

__all__ = [
    "FOLLOWUP_KIND",
    "JOB_KIND",
    "TRACK_KIND",
    "component_ids",
    "followup_create",
    "followup_job_ended",
    "followup_ready",
    "followups_follow_title",
    "frame_id",
    "mosaic_create",
    "mosaic_delete",
    "mosaic_job_ended",
    "mosaic_ready",
    "mosaic_refused",
    "mosaics_binned",
    "mosaics_follow_title",
    "mosaics_purge",
    "mosaics_restored",
    "roi_track",
    "state_again",
]
