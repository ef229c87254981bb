"""Runs of frames in words, by hand."""

from __future__ import annotations

from ml.mosaic.gaps import reasons_in_words, span_in_words, span_of
from ml.mosaic.result import FrameResult, MosaicSpan


def frames(codes: str, *, per_s: float | None = 10.0) -> list[FrameResult]:
    """One frame a letter: d(ark), b(lurred), r(egistered)."""
    names = {"d": ("skipped", "dark"), "b": ("skipped", "blurred"), "r": ("registered", "")}
    return [
        FrameResult(
            index=i,
            pts=i,
            H_mosaic_from_frame=None,
            status=names[code][0],
            reason_code=names[code][1],
            time_s=None if per_s is None else i / per_s,
        )
        for i, code in enumerate(codes)
    ]


def test_gaps_are_listed_by_reason_in_order_of_frequency() -> None:
    text = reasons_in_words(frames("ddbbbrrbrb"))
    assert text == (
        "blurred: 0:00.2 to 0:00.4, 0:00.7, 0:00.9 (5 frames);"
        " too dark: 0:00.0 to 0:00.1 (2 frames)"
    )


def test_many_runs_are_named_by_their_number_and_ends() -> None:
    assert reasons_in_words(frames("dr" * 350)) == (
        "too dark: 350 times in 0:00.0 to 1:09.8 (350 frames)"
    )


def test_gaps_without_time_stamps_are_counted_in_frames() -> None:
    assert reasons_in_words(frames("rbbr", per_s=None)) == "blurred: frames 1 to 2 (2 frames)"
    assert span_in_words(span_of(frames("d", per_s=None))) == "frame 0"


def test_a_time_that_rounds_up_to_a_minute_is_shown_as_one() -> None:
    assert span_in_words(MosaicSpan(0, 9, 59.94, 59.96)) == "0:59.9 to 1:00.0"
    assert span_in_words(MosaicSpan(0, 9, 119.97, 179.9)) == "2:00.0 to 2:59.9"
