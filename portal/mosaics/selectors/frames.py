"""Reads of a mosaic's frames: which saw a point, where each lies, what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db.models import Count, Q, QuerySet

from ml.geometry import inside_convex, inverse, project_points
from ml.types import ArrayF64
from portal.core.errors import ConflictError, NotFoundError
from portal.mosaics.models import FrameStatus, Mosaic, MosaicComponent, MosaicFrame
from portal.mosaics.planes import matrices, view_polygon
from portal.mosaics.reasons import REASONS, REGISTERED, Reason, reason_of

DECIMALS = 1  # of an outline on the screen
MANY = 3000  # frames; beyond, outlines are coarser so that all of them stay small


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """So many frames ended so, for this reason."""

    status: str
    reason: Reason
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
        start, stop: positions in the list of the mosaic's frames; ``stop`` is excluded.
        reason: of the first frame, in the engine's words.
        first_index, last_index, first_s, last_s, first_pts: of the video.
    """

    start: int
    stop: int
    status: str
    kind: Reason
    reason: str
    first_index: int
    last_index: int
    first_s: float
    last_s: float
    first_pts: int

    @property
    def width(self) -> int:
        """How many frames."""
        return self.stop - self.start

    @property
    def words(self) -> str:
        """For the tooltip: ``Frames 11 to 26, 0.33 s to 0.83 s: skipped, blurred``."""
        why = self.reason if self.width == 1 else self.kind.name
        return f"{self.span_words}: {self.status}{f', {why}' if self.kind.code else ''}"

    @property
    def span_words(self) -> str:
        """``Frames 11 to 26, 0.33 s to 0.83 s``, counted from 1 as the viewer does."""
        if self.width == 1:
            return f"Frame {self.first_index + 1}, {self.first_s:.2f} s"
        return (
            f"Frames {self.first_index + 1} to {self.last_index + 1},"
            f" {self.first_s:.2f} s to {self.last_s:.2f} s"
        )


@dataclass(frozen=True, slots=True)
class FrameAtPoint:
    """A frame that saw a point of the mosaic, and where in the frame.

    Attributes:
        sharpness: larger is sharper, among frames of one video; None where it was not measured.
        uncertainty_px: one standard deviation of the frame's position, mosaic px.
        outline: the frame's view on the mosaic.
    """

    index: int
    pts: int
    time_s: float
    xy_frame: tuple[float, float]
    from_centre_px: float
    sharpness: float | None
    uncertainty_px: float | None
    outline: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class FramesAtPoint:
    """How many frames saw a point, and the best of them."""

    count: int
    frames: tuple[FrameAtPoint, ...]


def mosaic_frames(mosaic: Mosaic, *, status: str = "") -> QuerySet[MosaicFrame]:
    """The frames in order, all or those of one status."""
    frames = MosaicFrame.objects.filter(mosaic=mosaic).order_by("index")
    return frames.filter(status=status) if status else frames


def mosaic_report(mosaic: Mosaic) -> MosaicReport:
    """Counts by status and kind of reason, the commonest first."""
    rows = (
        MosaicFrame.objects.filter(mosaic=mosaic)
        .order_by()
        .values_list("status", "reason_code")
        .annotate(count=Count("pk"))
    )
    counts = dict.fromkeys(FrameStatus.values, 0)
    kinds: dict[tuple[str, str], int] = {}
    for status, code, count in rows:
        counts[status] += count
        if status != FrameStatus.REGISTERED:
            key = (status, reason_of(status=status, code=code).code)
            kinds[key] = kinds.get(key, 0) + count
    found = [ReasonCount(status, REASONS[code], n) for (status, code), n in kinds.items()]
    return MosaicReport(
        frames=sum(counts.values()),
        registered=counts[FrameStatus.REGISTERED],
        skipped=counts[FrameStatus.SKIPPED],
        failed=counts[FrameStatus.FAILED],
        reasons=tuple(sorted(found, key=lambda row: (-row.count, row.reason.code))),
    )


def frame_runs(mosaic: Mosaic) -> list[FrameRun]:
    """The frames as runs of equal status and kind of reason: exact, and short enough to draw."""
    rows = mosaic_frames(mosaic).values_list("index", "pts", "status", "reason_code", "reason")
    second = mosaic.video.time_base_s
    runs: list[FrameRun] = []
    for position, (index, pts, status, code, reason) in enumerate(rows):
        kind = reason_of(status=status, code=code)
        time_s = round(pts * second, 6)
        run = FrameRun(
            position, position + 1, status, kind, reason, index, index, time_s, time_s, pts
        )
        if runs and (runs[-1].status, runs[-1].kind) == (status, kind):
            run = replace(runs.pop(), stop=run.stop, last_index=run.last_index, last_s=run.last_s)
        runs.append(run)
    return runs


def runs_lost(runs: Sequence[FrameRun]) -> list[FrameRun]:
    """The runs that are not in the mosaic, the longest first."""
    lost = [run for run in runs if run.status != FrameStatus.REGISTERED]
    return sorted(lost, key=lambda run: (-run.width, run.start))


def reasons_of(runs: Sequence[FrameRun]) -> list[Reason]:
    """The kinds that occur, for the legend: in the mosaic first."""
    found = {run.kind for run in runs}
    return [reason for reason in REASONS.values() if reason in found]


def frames_at_point(
    mosaic: Mosaic, *, x: float, y: float, component: int = 0, limit: int = 100
) -> FramesAtPoint:
    """The frames that saw a point of the mosaic, the sharpest first.

    Reads only frames whose bounds hold the point, in one query.

    Args:
        x, y: mosaic pixels (level 0 of the component's canvas).
        component: index of it.

    Raises:
        ConflictError: the mosaic is not ready.
        NotFoundError: no such component, or the point lies outside of it.
    """
    canvas = component_of(mosaic, component).canvas
    if not (0 <= x <= canvas.width_px and 0 <= y <= canvas.height_px):
        raise NotFoundError(
            f"The point lies outside of the mosaic of {canvas.width_px} x {canvas.height_px} px."
        )
    near = Q(left__lte=x, right__gte=x, top__lte=y, bottom__gte=y) | Q(left=None)
    rows = list(
        MosaicFrame.objects.filter(
            near, mosaic=mosaic, component=component, status=FrameStatus.REGISTERED
        )
        .order_by("index")
        .values_list("index", "pts", "H_mosaic_from_frame", "sharpness", "uncertainty_px")
    )
    if not rows:
        return FramesAtPoint(0, ())
    view = view_of(mosaic)
    H_mosaic_from_frame = matrices([row[2] for row in rows])
    point = np.array([[x, y]], np.float64)
    xy, is_front = project_points(inverse(H_mosaic_from_frame), point)
    xy_frame = xy[:, 0]
    seen = np.flatnonzero(is_front[:, 0] & inside_convex(view, xy_frame))
    away_px = np.linalg.norm(xy_frame - view.mean(axis=0), axis=1)
    order = sorted(seen, key=lambda i: (-(rows[i][3] or 0.0), away_px[i], rows[i][0]))[:limit]
    outlines, _ = project_points(H_mosaic_from_frame[order], view)
    second = mosaic.video.time_base_s
    frames = tuple(
        FrameAtPoint(
            index=rows[i][0],
            pts=rows[i][1],
            time_s=round(rows[i][1] * second, 6),
            xy_frame=(round(float(xy_frame[i, 0]), 2), round(float(xy_frame[i, 1]), 2)),
            from_centre_px=round(float(away_px[i]), 2),
            sharpness=rows[i][3],
            uncertainty_px=rows[i][4],
            outline=rounded_outline(outline),
        )
        for i, outline in zip(order, outlines, strict=True)
    )
    return FramesAtPoint(len(seen), frames)


def frame_columns(mosaic: Mosaic) -> dict[str, Any]:
    """Every frame in columns, for a timeline and a moving outline: small enough for 30,000.

    ``reason`` counts into ``reasons``; ``outline`` is flat x, y pairs on the frame's component, or
    null.
    """
    rows = list(
        mosaic_frames(mosaic).values_list(
            "index", "pts", "status", "reason_code", "component", "H_mosaic_from_frame"
        )
    )
    codes = [reason_of(status=row[2], code=row[3]).code for row in rows]
    used = [code for code in REASONS if code in set(codes) | {REGISTERED.code}]
    order = {code: at for at, code in enumerate(used)}
    return {
        "count": len(rows),
        "time_base_s": mosaic.video.time_base_s,
        "reasons": [
            {"code": REASONS[c].code, "name": REASONS[c].name, "color": REASONS[c].color}
            for c in used
        ],
        "index": [row[0] for row in rows],
        "pts": [row[1] for row in rows],
        "reason": [order[code] for code in codes],
        "component": [row[4] for row in rows],
        "outline": list(_flat_outlines(mosaic, [row[5] for row in rows])),
    }


def view_of(mosaic: Mosaic) -> ArrayF64:
    """(P, 2): what the scope sees of a frame, frame pixels."""
    canvas = mosaic.video.canvas
    width_px, height_px = (canvas.width_px, canvas.height_px) if canvas else (1, 1)
    return view_polygon(mosaic.view_outline, width_px=width_px, height_px=height_px)


def component_of(mosaic: Mosaic, component: int) -> MosaicComponent:
    """One component of a ready mosaic, from those read with it.

    Raises:
        ConflictError: the mosaic is not ready.
        NotFoundError: it has fewer components.
    """
    components = list(mosaic.components.all())
    if not components:
        raise ConflictError("The mosaic is not ready yet.", code="mosaic-not-ready")
    for found in components:
        if found.index == component:
            return found
    known = f"it has {len(components)}, counted from 0"
    raise NotFoundError(f"The mosaic has no component {component}; {known}.")


def _flat_outlines(mosaic: Mosaic, rows: Sequence[Any]) -> Iterator[list[float] | None]:
    placed = [row for row in rows if row is not None]
    if not placed:
        yield from (None for _ in rows)
        return
    view = thinned(view_of(mosaic), at_most=32 if len(placed) <= MANY else 16)
    xy, is_front = project_points(matrices(placed), view)
    flat = np.round(xy.reshape(len(placed), -1), DECIMALS).tolist()
    usable = [bool(row.all()) for row in is_front]
    found = iter(zip(flat, usable, strict=True))
    for row in rows:
        outline, is_usable = (None, False) if row is None else next(found)
        yield outline if is_usable else None


def thinned(polygon: ArrayF64, *, at_most: int) -> ArrayF64:
    """Fewer corners of a fine outline: enough to draw it."""
    if len(polygon) <= at_most:
        return polygon
    return polygon[np.linspace(0, len(polygon), at_most, endpoint=False).astype(int)]


def rounded_outline(outline: ArrayF64) -> tuple[tuple[float, float], ...]:
    """Corners to draw, to a hundredth of a pixel."""
    return tuple((round(float(x), 2), round(float(y), 2)) for x, y in thinned(outline, at_most=32))
