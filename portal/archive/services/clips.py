"""Clips: a span of frames of a video as a file of its own."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from ml.files import sync_folder, sync_tree
from portal.archive import inspection
from portal.archive.models import Canvas, Video
from portal.archive.selectors.clips import clip_path
from portal.archive.selectors.frames import frame_table
from portal.archive.storage import files as storage
from portal.core.disk import require_room
from portal.core.errors import InvalidInputError, NotFoundError
from portal.core.tasks import JobContext, JobResult
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import User

CLIP_KIND = "video_clip"
MAX_CLIP_FRAMES = 9_000  # five minutes at 30 a second


@dataclass(frozen=True, slots=True)
class ClipSpan:
    """First and last frame of a clip, both inclusive."""

    first: int
    last: int


def clip_request(*, video: Video, user: User, first_index: int, last_index: int) -> Job:
    """The job that writes a clip: one under way, or a new one.

    Raises:
        NotFoundError: the frames of the video are not known yet.
        InvalidInputError: no such frames, or too many.
    """
    span = clip_span(video, first_index, last_index)
    count = span.last - span.first + 1
    return job_submit(
        kind=CLIP_KIND,
        args={"video_id": str(video.pk), "first": span.first, "last": span.last},
        lab=video.lab,
        user=user,
        target=video,
        target_name=f"{video.name}, {count} frame{'' if count == 1 else 's'}",
        is_unique=True,
    )


def clip_span(video: Video, first_index: int, last_index: int) -> ClipSpan:
    """Check a span. ``InvalidInputError``: no such frames, or more than ``MAX_CLIP_FRAMES``."""
    total = len(frame_table(video))
    if last_index < first_index:
        raise InvalidInputError(
            f"last_index: frame {last_index} is before the first frame, {first_index}."
        )
    if last_index >= total:
        raise InvalidInputError(
            f"last_index: frame {last_index} is not in this video; it has frames 0 to {total - 1}."
        )
    count = last_index - first_index + 1
    if count > MAX_CLIP_FRAMES:
        raise InvalidInputError(
            f"last_index: a clip has {MAX_CLIP_FRAMES:,} frames at most; these are {count:,}. "
            "Choose a shorter span."
        )
    return ClipSpan(first_index, last_index)


def clip_write(*, video_id: uuid.UUID, span: ClipSpan, context: JobContext) -> JobResult:
    """Write a clip in a confined child process and publish it by one rename.

    Raises:
        NotFoundError: the video is gone.
        MlError: its frames cannot be read.
    """
    video = Video.objects.select_related("canvas").filter(pk=video_id).first()
    if video is None or video.canvas is None:
        raise NotFoundError("The video was deleted before the clip was written.")
    canvas: Canvas = video.canvas
    target = clip_path(canvas, span.first, span.last)
    if not target.is_file():
        require_room()
        with context.scratch() as scratch:
            folder = _cut_clip(canvas, video, span, scratch, context)
            sync_tree(folder)
            with context.effect():
                target.parent.mkdir(parents=True, exist_ok=True)
                folder.replace(target)
                sync_folder(target.parent)
    return {
        "frames": span.last - span.first + 1,
        "size_bytes": target.stat().st_size,
        "first_index": span.first,
        "first_time_s": float(frame_table(video).time_s[span.first]),
    }


def _cut_clip(
    canvas: Canvas, video: Video, span: ClipSpan, folder: Path, context: JobContext
) -> Path:
    count = span.last - span.first + 1
    return inspection.clip_make(
        storage.resolve(canvas.pixels_path),
        folder,
        frames=storage.resolve(video.frames_path),
        first=span.first,
        last=span.last,
        megapixels=count * canvas.width_px * canvas.height_px / 1e6,
        progress=context.progress,
    )
