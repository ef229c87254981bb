"""Presentation times that ascend, from stamps that restart, wrap around, repeat or are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ml.types import ArrayI64

_REPEAT_STEPS = 2.5
"""A step back of at most so many frames is disorder within a recording; a longer one, a restart."""
MAX_START = 2**52
"""A clock beyond it means nothing, and a browser's numbers hold no larger ones exactly."""


@dataclass(frozen=True, slots=True)
class ClockRules:
    """Properties of a container's clock, in its ticks.

    Attributes:
        wrap: the clock begins at 0 again after so many; 0 if it never does.
        jump: what is longer is no pause of a recording, but a clock that was set.
        step: usual duration of a frame.
    """

    wrap: int
    jump: int
    step: int


def usual_step(stamps: Sequence[int | None]) -> int:
    """Median distance of ascending neighbours, 1 where there are none."""
    present = np.array([stamp for stamp in stamps if stamp is not None], np.int64)
    steps = np.diff(present)
    steps = steps[steps > 0]
    return max(1, round(float(np.median(steps)))) if len(steps) else 1


def presentation_times(stamps: Sequence[int | None], rules: ClockRules) -> tuple[ArrayI64, int]:
    """Strictly ascending times of frames in presentation order.

    The first part keeps the stamps of the file. Where the clock restarts or jumps, the part follows
    one step after the frame before it. Frames without a stamp, or with one that is not later than
    that of the frame before, share the time up to the next frame evenly.

    Args:
        stamps: as stored, None where a frame has none.
    Returns:
        (N,) int64 times; the number of restarts and jumps.
    """
    times: list[int | None] = []
    offset = restarts = waiting = 0
    last: int | None = None  # stamp, unwrapped
    reached = 0  # the latest time so far
    for stamp in stamps:
        time: int | None = None
        if stamp is not None and last is None:
            offset = 0 if abs(stamp) <= MAX_START else -stamp
            last = stamp
            time = reached = stamp + offset
        elif stamp is not None and last is not None:
            unwrapped = _unwrap(stamp, last, rules.wrap)
            if not -_REPEAT_STEPS * rules.step <= unwrapped - last <= rules.jump:
                restarts += 1
                offset = reached + rules.step * (waiting + 1) - unwrapped
            last = unwrapped
            if unwrapped + offset > reached:
                time = reached = unwrapped + offset
        waiting = waiting + 1 if time is None else 0
        times.append(time)
    return _fill_gaps(times, rules.step), restarts


def _unwrap(stamp: int, last: int, wrap: int) -> int:
    """The stamp plus the turns of the clock that bring it nearest to the last one."""
    return stamp + wrap * round((last - stamp) / wrap) if wrap else stamp


def _fill_gaps(times: list[int | None], step: int) -> ArrayI64:
    """Times for frames that have none: between their neighbours, or in steps at either end."""
    count = len(times)
    timed = [at for at, time in enumerate(times) if time is not None]
    if not timed:
        return np.arange(count, dtype=np.int64) * step
    filled = np.array([0 if time is None else time for time in times], np.int64)
    first, last = timed[0], timed[-1]
    filled[:first] = filled[first] - step * np.arange(first, 0, -1)
    filled[last + 1 :] = filled[last] + step * np.arange(1, count - last)
    for before, after in pairwise(timed):
        if after - before > 1:
            share = np.arange(1, after - before) / (after - before)
            filled[before + 1 : after] = filled[before] + (
                (filled[after] - filled[before]) * share
            ).astype(np.int64)
    return _ascending(filled)


def _ascending(times: ArrayI64) -> ArrayI64:
    """Move times apart to at least one tick, even if there are fewer ticks than frames."""
    at = np.arange(len(times), dtype=np.int64)
    return np.asarray(np.maximum.accumulate(times - at) + at, np.int64)
