"""Gaps between registered frames: named by their seconds and the commonest reason."""

from __future__ import annotations

from dataclasses import replace

from ml.mosaic.report import find_gaps
from tests.ml.mosaic.conftest import dropped_frame, registered_frame


def test_gaps_have_their_seconds_and_most_frequent_reason() -> None:
    frames = [
        registered_frame(0, 0),
        *[dropped_frame(i, "smoke") for i in range(1, 251)],
        dropped_frame(251, "blurred"),
    ]
    (gap,) = find_gaps([*frames, registered_frame(252, 9)])
    assert gap.text == "0:00.0 to 0:10.0 (251 frames): veiled by smoke or water"
    assert (gap.span.first_index, gap.span.last_index, gap.frames) == (1, 251, 251)
    unclocked = [
        replace(f, time_s=None) for f in (registered_frame(0, 0), dropped_frame(1, "dark"))
    ]
    assert find_gaps(unclocked)[0].text == "frame 1 (1 frame): too dark"
    assert find_gaps([registered_frame(0, 0)]) == ()
