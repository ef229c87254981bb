"""Texts for users about runs of unregistered frames: their time spans and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from ml.errors import MosaicError
from ml.mosaic.result import REASON_CODES, REGISTERED, FrameResult, MosaicSpan

RUNS_NAMED = 3
"""Up to this many runs of one reason are named; more are summed up by number and ends."""


class NothingRegisteredError(MosaicError):
    """No two frames show the same place; ``frames`` has the reason of each."""

    def __init__(self, frames: Sequence[FrameResult], *, usable: int) -> None:
        cause = f"none of {len(frames)} frames is usable"
        if usable:
            cause = f"no two of {usable} usable frames, out of {len(frames)}, show the same place"
        super().__init__(f"register: {cause}; {reasons_in_words(frames)}")
        self.frames = tuple(frames)


def reasons_in_words(frames: Sequence[FrameResult]) -> str:
    """Text such as ``too dark: 0:00.0 to 0:02.4 (60 frames); blurred: ...``, by frequency."""
    runs: dict[str, list[list[FrameResult]]] = {}
    for code, run in groupby(frames, key=lambda f: f.reason_code):
        runs.setdefault(code, []).append(list(run))
    counts = Counter(f.reason_code for f in frames if f.status != REGISTERED)
    return "; ".join(
        f"{REASON_CODES.get(code, code)}: {_runs_in_words(runs[code])} ({frames_in_words(count)})"
        for code, count in counts.most_common()
    )


def _runs_in_words(runs: Sequence[Sequence[FrameResult]]) -> str:
    if len(runs) <= RUNS_NAMED:
        return ", ".join(span_in_words(span_of(run)) for run in runs)
    return f"{len(runs)} times in {span_in_words(span_of([*runs[0], *runs[-1]]))}"


def span_of(members: Sequence[FrameResult]) -> MosaicSpan:
    """Span from the first to the last of ordered frames."""
    first, last = members[0], members[-1]
    return MosaicSpan(first.index, last.index, first.time_s, last.time_s)


def span_in_words(span: MosaicSpan) -> str:
    """``0:12.4 to 0:14.0``; frames by their index where there is no clock."""
    if span.first_s is None or span.last_s is None:
        if span.first_index == span.last_index:
            return f"frame {span.first_index}"
        return f"frames {span.first_index} to {span.last_index}"
    first, last = _clock(span.first_s), _clock(span.last_s)
    return first if first == last else f"{first} to {last}"


def frames_in_words(count: int) -> str:
    """``1 frame``, ``40 frames``."""
    return "1 frame" if count == 1 else f"{count} frames"


def _clock(seconds: float) -> str:
    minutes, remainder = divmod(round(seconds, 1), 60)  # rounded first: no minute has 60.0 seconds
    return f"{int(minutes)}:{remainder:04.1f}"
