"""The job that follows an ROI over the frames of its video."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ml.errors import MlError
from ml.imaging.videos.video import iter_frames
from ml.types import ArrayF64, FrameTable, ImageU8
from portal.annotations.geometry import GeoJsonGeometry, polygons_of
from portal.annotations.models import Roi
from portal.archive.selectors.canvases import canvas_video
from portal.archive.selectors.frames import frame_table
from portal.archive.storage import files as storage
from portal.core.errors import PortalError
from portal.core.tasks import JobContext, JobResult, UserError, job_task
from portal.jobs.models import Job
from portal.mosaics.services.tracking import (
    TRACK_KIND,
    TrackedKeyFrame,
    TrackSpan,
    outline_at,
    track_written,
)
from portal.mosaics.tasks.errors import sentence

if TYPE_CHECKING:
    from ml.mosaic.tracking import Track

RUN_FRAMES = 24  # decoded at once where it goes backwards: 150 MB at 1080p


@job_task(TRACK_KIND, title="Follow region", retry_on=(OSError,))
def roi_track(
    context: JobContext, *, roi_id: str, version: int, first: int, last: int
) -> JobResult:
    """Carry an ROI's outline from one of its key frames to another frame, or until it is lost."""
    roi = Roi.objects.select_related("canvas__video").filter(pk=uuid.UUID(roi_id)).first()
    job = Job.objects.select_related("created_by").get(pk=context.job_id)
    if roi is None or roi.deleted_at is not None or job.created_by is None:
        raise UserError("The region was deleted before the job began.", code="gone")
    outline = outline_at(roi, first)
    if roi.version != version or outline is None:
        raise UserError(
            "The region has been changed in the meantime. Follow it again.", code="changed"
        )
    span = TrackSpan(first, last)
    track = _track_outline(context, roi, outline, span)
    table = frame_table(canvas_video(roi.canvas))
    key_frames = list(_key_frames(track, outline, table))
    reached = track.outlines[-1].index
    if not key_frames:
        raise UserError(
            f"The region was lost at once: {track.lost or 'no frame could be decoded'}.",
            code="lost",
        )
    try:
        with context.effect():
            track_written(
                roi=roi, user=job.created_by, version=version, span=span, key_frames=key_frames
            )
    except PortalError as error:
        raise UserError(error.message, code=error.code) from error
    result: JobResult = {
        "frames": len(track.outlines) - 1,
        "last": reached,
        "key_frames": len(key_frames),
    }
    if track.lost:
        result |= {"outcome": f"lost after frame {reached + 1}", "reason": track.lost}
    return result


def _track_outline(
    context: JobContext, roi: Roi, outline: GeoJsonGeometry, span: TrackSpan
) -> Track:
    from ml.mosaic.tracking import track_outline

    total = abs(span.last - span.first)

    def frames_with_progress() -> Iterator[tuple[int, ImageU8]]:
        source = storage.resolve(roi.canvas.pixels_path)
        table = frame_table(canvas_video(roi.canvas))
        for number, frame in enumerate(_frames(source, table, span)):
            context.progress(min(number, total), total, "following")
            yield frame

    try:
        return track_outline(frames_with_progress(), _vertices(outline))
    except MlError as error:
        if error.code == "cancelled":
            raise
        raise UserError(sentence(error), code=error.code) from error


def _frames(source: Path, table: FrameTable, span: TrackSpan) -> Iterator[tuple[int, ImageU8]]:
    """Yield (index, frame) from the first to the last; backwards in runs decoded forwards."""
    if span.last >= span.first:
        yield from _decode_frames(source, table, span.first, span.last)
        return
    for stop in range(span.first, span.last - 1, -RUN_FRAMES):
        run = _decode_frames(source, table, max(stop - RUN_FRAMES + 1, span.last), stop)
        yield from reversed(list(run))


def _decode_frames(
    source: Path, table: FrameTable, first: int, last: int
) -> Iterator[tuple[int, ImageU8]]:
    pts = table.pts
    frames = iter_frames(source, start_pts=int(pts[first]), stop_pts=int(pts[last]), table=table)
    return ((index, rgb) for index, _, rgb in frames)


def _vertices(geometry: GeoJsonGeometry) -> ArrayF64:
    """(V, 2): every vertex of every ring, in the order of the geometry."""
    rings = [ring for part in polygons_of(geometry) for ring in part]
    return np.concatenate([np.array(ring, np.float64) for ring in rings])


def _key_frames(
    track: Track, outline: GeoJsonGeometry, table: FrameTable
) -> Iterator[TrackedKeyFrame]:
    """Tracked outlines as key frames, without the first, which exists."""
    from ml.mosaic.tracking import TrackConfig, key_outlines

    keys = list(key_outlines(track, TrackConfig().tolerance_px))
    for key in keys[1:]:
        yield {
            "index": key.index,
            "pts": int(table.pts[key.index]),
            "geometry": _replace_vertices(outline, key.xy),
            "by": "tracking",
            "drift_px": key.drift_px,
        }


def _replace_vertices(geometry: GeoJsonGeometry, xy: ArrayF64) -> GeoJsonGeometry:
    """The same rings with other vertices."""
    at = 0
    parts = []
    for part in polygons_of(geometry):
        rings = []
        for ring in part:
            rings.append(np.round(xy[at : at + len(ring)], 2).tolist())
            at += len(ring)
        parts.append(rings)
    is_one = geometry["type"] == "Polygon"
    return {"type": geometry["type"], "coordinates": parts[0] if is_one else parts}
