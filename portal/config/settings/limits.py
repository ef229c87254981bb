"""Seconds until an attempt of a job is killed, by its kind: they end what hangs.

They are far above the need of two slow cores; ``TESSERA_JOB_LIMITS`` replaces single ones.
"""

from __future__ import annotations

JOB_LIMITS_S = {
    "upload_finish": 4 * 3600.0,  # 100 GiB to join, to hash and, to a bucket, to send
    "slide_ingest": 4 * 3600.0,  # 100 GiB to hash, a large still to tile; its child has an hour
    "video_ingest": 12 * 3600.0,  # a rendition of two hours of video takes several times as long
    "video_clip": 3600.0,  # 9,000 frames to decode and to encode: minutes on two cores
    "roi_embed": 1800.0,  # seconds; a foundation model without a GPU takes minutes
    "query_embed": 1800.0,  # as roi_embed; a slide's tissue is sampled by as many patches
    "match_explain": 1800.0,  # as roi_embed, of two regions twice
    "report_pictures": 1800.0,  # fifty regions; each one of a video takes a second or so
    "map_draw": 3600.0,  # 100,000 regions: their neighbours take minutes on two cores
    "tissue_sample": 1800.0,  # a minute of embedding, and one square may be large and slow
    "roi_quantify": 3600.0,  # 25 mm² of nuclei: minutes on two cores
    "canvas_embed": 3600.0,  # yields much earlier, between two parts
    "rois_import": 6 * 3600.0,  # a million features; yields between parts
    "rois_import_undo": 3600.0,  # a million ROIs; yields between parts
    "index_build": 3600.0,  # a million vectors read and written: minutes
    "metric_learn": 3600.0,  # eight thousand regions compared with each other: minutes
    "metric_embed": 3600.0,  # a million vectors multiplied by a matrix and written: minutes
    "encoder_learn": 6 * 3600.0,  # yields at each checkpoint
    "encoder_embed": 3600.0,  # yields between two parts
    "lab_embed": 3600.0,  # one row for each ROI of a lab
    "mosaic_build": 24 * 3600.0,  # hours for a long video at every frame
    "erasure_run": 4 * 3600.0,  # files, rewritten indexes and database
    "webhook_deliver": 600.0,  # ends after some seconds; a request has 15
    "notifications_mail": 600.0,  # one message a person; each takes a second or so
    "cases_export": 12 * 3600.0,  # many of these, one after the other
    "case_export": 4 * 3600.0,  # 100 GB to read, to hash and to write
    "case_import": 12 * 3600.0,  # the same twice, and once more to hash what was taken out
    "roi_track": 3600.0,  # a minute of video, a tenth of a second a frame
    "followup_find": 3600.0,  # one place compared with the frames of one examination
}
