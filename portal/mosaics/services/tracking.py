"""Track an ROI over the frames of its video: submit the job and store its key frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from portal.annotations.geometry import GeoJsonGeometry
from portal.annotations.marks import MARKS
from portal.annotations.models import Roi
from portal.annotations.rules import require_annotate
from portal.annotations.services.rois import roi_update
from portal.archive.models import CanvasKind
from portal.archive.selectors.canvases import canvas_video
from portal.archive.selectors.frames import frame_table
from portal.core.errors import ConflictError, InvalidInputError, StaleVersionError
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User

TRACK_KIND = "roi_track"
MAX_TRACKED_FRAMES = (
    1_500  # a minute at 25 a second; a person looks at the end of it before the next
)


@dataclass(frozen=True, slots=True)
class TrackSpan:
    """Frames of a tracking.

    Attributes:
        first: Index of the key frame to start from.
        last: Index of the last frame, before or after it, short of the next key frame set by hand,
            which is preserved.
    """

    first: int
    last: int


class TrackedKeyFrame(TypedDict):
    """A key frame that the computer made; the fields are those of a track's."""

    index: int
    pts: int
    geometry: GeoJsonGeometry
    by: str
    drift_px: float


def roi_track(
    *,
    roi: Roi,
    user: User,
    expected_version: int,
    from_index: int | None = None,
    backward: bool = False,
    frames: int = MAX_TRACKED_FRAMES,
) -> Job:
    """Follow an ROI from one of its key frames on; submits ``roi_track``.

    Args:
        from_index: a key frame of the ROI; None for its own frame.

    Raises:
        ForbiddenError: not an annotator.
        StaleVersionError: someone else changed it first.
        ConflictError: deleted or locked.
        InvalidInputError: not on a video, or nothing to follow.
    """
    require_annotate(user, roi.lab_id)
    if roi.deleted_at is not None:
        raise ConflictError("This region is deleted. Restore it first.", code="roi-deleted")
    if roi.is_locked:
        raise ConflictError("This region is locked. Unlock it first.", code="roi-locked")
    if roi.version != expected_version:
        raise StaleVersionError(
            f"You saw version {expected_version}, but the current version is {roi.version}.",
            details={"current_version": roi.version},
        )
    span = track_span(roi, from_index=from_index, backward=backward, frames=frames)
    return job_submit(
        kind=TRACK_KIND,
        args={
            "roi_id": str(roi.pk),
            "version": roi.version,
            "first": span.first,
            "last": span.last,
        },
        lab=roi.lab,
        user=user,
        target=roi,
        target_name=roi.name or roi.canvas.name,
    )


def track_span(roi: Roi, *, from_index: int | None, backward: bool, frames: int) -> TrackSpan:
    """Span of frames in which to track an ROI; ``InvalidInputError`` if it is empty."""
    if roi.shape in MARKS:
        raise InvalidInputError("roi: points and lines have no outline to follow.")
    if roi.canvas.kind != CanvasKind.VIDEO or roi.frame_index is None:
        raise InvalidInputError("roi: only a region on a video can be followed.")
    first = roi.frame_index if from_index is None else from_index
    if outline_at(roi, first) is None:
        raise InvalidInputError(f"from: the region has no key frame with an outline at {first}.")
    step = -1 if backward else 1
    end = 0 if backward else len(frame_table(canvas_video(roi.canvas))) - 1
    last = max(first - frames, end) if backward else min(first + frames, end)
    by_hand = [roi.frame_index, *(key["index"] for key in roi.track if key["by"] == "hand")]
    later_positions = [index for index in by_hand if (index - first) * step > 0]
    if later_positions:
        nearest = min(later_positions, key=lambda index: abs(index - first)) - step
        last = max(last, nearest) if backward else min(last, nearest)
    if last == first:
        raise InvalidInputError("from: there are no frames beyond this key frame to follow it to.")
    return TrackSpan(first, last)


def outline_at(roi: Roi, index: int) -> GeoJsonGeometry | None:
    """The outline on a key frame; None if it is not a key frame, or the ROI is out of view."""
    key_frame = next((key for key in roi.track if key["index"] == index), None)
    if key_frame is not None:
        geometry: GeoJsonGeometry | None = key_frame["geometry"]
        return geometry
    return roi.geometry if index == roi.frame_index else None


def track_written(
    *, roi: Roi, user: User, version: int, span: TrackSpan, key_frames: Sequence[TrackedKeyFrame]
) -> Roi:
    """Replace the key frames of an earlier tracking of these frames by new ones.

    One change of the ROI in the name of the requesting user; key frames set by hand are preserved.
    Call in ``effect``.

    Raises:
        StaleVersionError, ConflictError: it was changed, deleted or locked in the meantime.
    """
    low, high = sorted((span.first, span.last))
    unchanged = [
        key
        for key in roi.track
        if key["by"] == "hand" or not low <= key["index"] <= high or key["index"] == span.first
    ]
    have = {key["index"] for key in unchanged} | {roi.frame_index}
    fresh = [key for key in key_frames if key["index"] not in have]
    return roi_update(
        roi=roi, user=user, expected_version=version, changes={"track": [*unchanged, *fresh]}
    ).roi
