"""Reads of a mosaic's frames: what became of them, as counts, as runs and in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
from django.db.models import Count, QuerySet

from portal.mosaics.models import FrameStatus, Mosaic, MosaicFrame
from portal.mosaics.planes import thinned
from portal.mosaics.reasons import REASONS, REGISTERED, Reason, reason_of
from portal.mosaics.selectors.components import maps_of, view_of

DECIMALS = 1
"""Decimals of an outline on the screen: a tenth of a pixel is invisible."""

MANY = 3000
"""Frames beyond which outlines are coarser, so that the answer stays small."""

FINE_CORNERS, COARSE_CORNERS = 32, 16
"""Corners of an outline: round to the eye, and still round enough when small."""


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """Number of frames with this status and reason."""

    status: str
    reason: Reason
    count: int


@dataclass(frozen=True, slots=True)
class MosaicReport:
    """Number of frames per status; every frame is counted."""

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
        """Number of frames."""
        return self.stop - self.start

    @property
    def description(self) -> str:
        """For the tooltip: ``Frames 11 to 26, 0.33 s to 0.83 s: skipped, blurred``."""
        reason = self.reason if self.width == 1 else self.kind.name
        return f"{self.span_text}: {self.status}{f', {reason}' if self.kind.code else ''}"

    @property
    def span_text(self) -> str:
        """``Frames 11 to 26, 0.33 s to 0.83 s``, counted from 1 as the viewer does."""
        if self.width == 1:
            return f"Frame {self.first_index + 1}, {self.first_s:.2f} s"
        return (
            f"Frames {self.first_index + 1} to {self.last_index + 1},"
            f" {self.first_s:.2f} s to {self.last_s:.2f} s"
        )


class ReasonColumn(TypedDict):
    """A reason as the legend shows it."""

    code: str
    name: str
    color: str


class FrameColumns(TypedDict):
    """All frames of a mosaic as columns of plain lists, ready for JSON.

    ``reason`` counts into ``reasons``; ``outline`` is flat x, y pairs on the frame's component, or
    None if it is on none.
    """

    count: int
    time_base_s: float
    reasons: list[ReasonColumn]
    index: list[int]
    pts: list[int]
    reason: list[int]
    component: list[int | None]
    outline: list[list[float] | None]


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
    reason_counts = [ReasonCount(status, REASONS[code], n) for (status, code), n in kinds.items()]
    return MosaicReport(
        frames=sum(counts.values()),
        registered=counts[FrameStatus.REGISTERED],
        skipped=counts[FrameStatus.SKIPPED],
        failed=counts[FrameStatus.FAILED],
        reasons=tuple(sorted(reason_counts, key=lambda row: (-row.count, row.reason.code))),
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
    run_kinds = {run.kind for run in runs}
    return [reason for reason in REASONS.values() if reason in run_kinds]


def frame_columns(mosaic: Mosaic) -> FrameColumns:
    """All frames of a mosaic as columns, for the timeline; compact enough for 30,000 frames."""
    rows = list(
        mosaic_frames(mosaic).values_list(
            "index", "pts", "status", "reason_code", "component", "H_mosaic_from_frame", "mesh"
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
        "outline": list(_flat_outlines(mosaic, [row[5:] for row in rows])),
    }


def _flat_outlines(mosaic: Mosaic, rows: Sequence[Any]) -> Iterator[list[float] | None]:
    placed = [row for row in rows if row[0] is not None]
    if not placed:
        yield from (None for _ in rows)
        return
    view = thinned(view_of(mosaic), at_most=FINE_CORNERS if len(placed) <= MANY else COARSE_CORNERS)
    maps = maps_of(mosaic, [row[0] for row in placed], [row[1] for row in placed])
    xy, is_front = maps.to_plane(view)
    flat = np.round(xy.reshape(len(placed), -1), DECIMALS).tolist()
    usable = [bool(row.all()) for row in is_front]
    outlines = iter(zip(flat, usable, strict=True))
    for row in rows:
        outline, is_usable = (None, False) if row[0] is None else next(outlines)
        yield outline if is_usable else None
