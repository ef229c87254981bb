"""Mosaic reads: what was built, what became of every frame, which frames saw a point."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from django.db.models import Count, QuerySet

from portal.archive.models import Canvas
from portal.core.errors import ConflictError, NotFoundError
from portal.jobs.models import Job
from portal.jobs.selectors import job_latest_for
from portal.labs.models import User
from portal.mosaics.models import FrameStatus, Mosaic, MosaicFrame

MIN_DEPTH = 1e-9  # a homography's w at or below it: the point lies behind the frame


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """So many frames ended so, for this reason."""

    status: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class MosaicReport:
    """What became of the frames; every frame is counted once."""

    frames: int = 0
    registered: int = 0
    skipped: int = 0
    failed: int = 0
    reasons: tuple[ReasonCount, ...] = ()


@dataclass(frozen=True, slots=True)
class FrameRun:
    """Frames in a row that ended alike, for the chart.

    Attributes:
        start, stop: place in the list of the mosaic's frames; ``stop`` is not part of it.
        first_index, last_index, first_s, last_s: of the video.
    """

    start: int
    stop: int
    status: str
    reason: str
    first_index: int
    last_index: int
    first_s: float
    last_s: float

    @property
    def width(self) -> int:
        """How many frames."""
        return self.stop - self.start

    @property
    def words(self) -> str:
        """For the tooltip: ``Frames 10 to 25, 0.33 s to 0.83 s: skipped, blurred``."""
        if self.width == 1:
            place = f"Frame {self.first_index}, {self.first_s:.2f} s"
        else:
            place = (
                f"Frames {self.first_index} to {self.last_index},"
                f" {self.first_s:.2f} s to {self.last_s:.2f} s"
            )
        return f"{place}: {self.status}{f', {self.reason}' if self.reason else ''}"


@dataclass(frozen=True, slots=True)
class FrameSighting:
    """A frame that saw a point of the mosaic, and where in the frame."""

    index: int
    pts: int
    time_s: float
    xy_frame: tuple[float, float]
    from_centre_px: float = field(default=0.0)


def mosaic_list(user: User) -> QuerySet[Mosaic]:
    """The mosaics this person may see, oldest first."""
    return Mosaic.objects.visible_to(user).select_related("canvas", "video__canvas", "case")


def mosaic_get(user: User, mosaic_id: uuid.UUID) -> Mosaic:
    """One mosaic; ``NotFoundError`` also where it is another lab's."""
    mosaic = mosaic_list(user).filter(pk=mosaic_id).first()
    if mosaic is None:
        raise NotFoundError("There is no such mosaic.")
    return mosaic


def mosaic_of_canvas(canvas: Canvas) -> Mosaic | None:
    """The mosaic a canvas shows. The caller may see the canvas."""
    return Mosaic.objects.filter(canvas=canvas).first()


def mosaic_jobs(mosaics: Iterable[Mosaic]) -> dict[uuid.UUID, Job]:
    """The newest job of each, in one query."""
    return job_latest_for(target_type="mosaic", target_ids=[mosaic.pk for mosaic in mosaics])


def mosaic_frames(mosaic: Mosaic, *, status: str = "") -> QuerySet[MosaicFrame]:
    """The frames in order, all or those of one status."""
    frames = MosaicFrame.objects.filter(mosaic=mosaic).order_by("index")
    return frames.filter(status=status) if status else frames


def mosaic_report(mosaic: Mosaic) -> MosaicReport:
    """Counts by status and reason, the commonest reason first."""
    rows = (
        MosaicFrame.objects.filter(mosaic=mosaic)
        .order_by()
        .values("status", "reason")
        .annotate(count=Count("pk"))
    )
    found = [ReasonCount(row["status"], row["reason"], row["count"]) for row in rows]
    counts = dict.fromkeys(FrameStatus.values, 0)
    for row in found:
        counts[row.status] += row.count
    reasons = sorted((r for r in found if r.reason), key=lambda r: (-r.count, r.reason))
    return MosaicReport(
        frames=sum(counts.values()),
        registered=counts[FrameStatus.REGISTERED],
        skipped=counts[FrameStatus.SKIPPED],
        failed=counts[FrameStatus.FAILED],
        reasons=tuple(reasons),
    )


def frame_runs(mosaic: Mosaic) -> list[FrameRun]:
    """The frames as runs of equal status and reason: exact, and short enough to draw."""
    rows = mosaic_frames(mosaic).values_list("index", "pts", "status", "reason")
    second = mosaic.video.time_base_s
    runs: list[FrameRun] = []
    for place, (index, pts, status, reason) in enumerate(rows):
        first_index, first_s, start = index, pts * second, place
        if runs and (runs[-1].status, runs[-1].reason) == (status, reason):
            last = runs.pop()
            first_index, first_s, start = last.first_index, last.first_s, last.start
        runs.append(
            FrameRun(start, place + 1, status, reason, first_index, index, first_s, pts * second)
        )
    return runs


def frames_at(mosaic: Mosaic, *, x: float, y: float) -> list[FrameSighting]:
    """The frames that saw a point of the mosaic, those with it nearest to their centre first.

    Args:
        x, y: mosaic pixels (level 0 of its canvas).

    Raises:
        ConflictError: the mosaic is not ready.
        NotFoundError: the point lies outside of it.
    """
    canvas, video_canvas = mosaic.canvas, mosaic.video.canvas
    if canvas is None or video_canvas is None:
        raise ConflictError("The mosaic is not ready yet.", code="mosaic-not-ready")
    if not (0 <= x <= canvas.width_px and 0 <= y <= canvas.height_px):
        raise NotFoundError(
            f"The point lies outside of the mosaic of {canvas.width_px} x {canvas.height_px} px."
        )
    rows = list(
        mosaic_frames(mosaic, status=FrameStatus.REGISTERED).values_list(
            "index", "pts", "H_mosaic_from_frame"
        )
    )
    if not rows:
        return []
    H_frame_from_mosaic = np.linalg.inv(np.array([row[2] for row in rows], np.float64))
    xyw = H_frame_from_mosaic @ np.array([x, y, 1.0])
    size = np.array([video_canvas.width_px, video_canvas.height_px], np.float64)
    in_front = xyw[:, 2] > MIN_DEPTH
    xy_frame = xyw[:, :2] / np.where(in_front, xyw[:, 2], 1.0)[:, None]
    inside = in_front & (xy_frame >= 0).all(axis=1) & (xy_frame <= size - 1).all(axis=1)
    distance = np.linalg.norm(xy_frame - (size - 1) / 2, axis=1)
    second = mosaic.video.time_base_s
    seen = [
        FrameSighting(
            index=rows[i][0],
            pts=rows[i][1],
            time_s=round(rows[i][1] * second, 6),
            xy_frame=(round(float(xy_frame[i, 0]), 2), round(float(xy_frame[i, 1]), 2)),
            from_centre_px=round(float(distance[i]), 2),
        )
        for i in np.flatnonzero(inside)
    ]
    return sorted(seen, key=lambda frame: (frame.from_centre_px, frame.index))
