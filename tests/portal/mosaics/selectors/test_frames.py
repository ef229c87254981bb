"""Frames that saw a point, and the status of each frame."""

from __future__ import annotations

from portal.mosaics.models import Mosaic, MosaicFrame
from portal.mosaics.selectors.frames import (
    frame_columns,
    frame_runs,
    mosaic_report,
    reasons_of,
    runs_lost,
)


def test_the_report_counts_every_frame_once(built: Mosaic) -> None:
    report = mosaic_report(built)
    assert (report.frames, report.registered, report.skipped, report.failed) == (8, 6, 1, 1)
    assert [(r.status, r.reason.code, r.count) for r in report.reasons] == [
        ("skipped", "blurred", 1),
        ("failed", "no-match", 1),
    ]


def test_runs_join_neighbours_of_equal_outcome(built: Mosaic) -> None:
    runs = frame_runs(built)
    assert [(run.start, run.stop, run.status) for run in runs] == [
        (0, 3, "registered"),
        (3, 4, "skipped"),
        (4, 5, "registered"),
        (5, 6, "failed"),
        (6, 8, "registered"),
    ]
    assert sum(run.width for run in runs) == 8
    assert runs[0].description == "Frames 1 to 3, 0.00 s to 0.08 s: registered"
    assert runs[1].description == "Frame 4, 0.12 s: skipped, blurred"
    assert [r.code for r in reasons_of(runs)] == ["", "blurred", "no-match"]


def test_runs_of_one_kind_join_though_their_numbers_differ(built: Mosaic) -> None:
    MosaicFrame.objects.filter(index=3).update(reason="blurred: sharpness 40% of its neighbours'")
    MosaicFrame.objects.filter(index=4).update(
        status="skipped",
        reason="blurred: sharpness 38% of its neighbours'",
        reason_code="blurred",
    )
    lost = runs_lost(frame_runs(built))
    assert [(run.kind.code, run.width) for run in lost] == [("blurred", 2), ("no-match", 1)]
    assert lost[0].description == "Frames 4 to 5, 0.12 s to 0.16 s: skipped, blurred"


def test_columns_hold_every_frame_with_its_reason_and_outline(built: Mosaic) -> None:
    columns = frame_columns(built)
    assert columns["count"] == len(columns["index"]) == 8
    reasons = [columns["reasons"][row]["code"] for row in columns["reason"]]
    assert reasons == ["", "", "", "blurred", "", "no-match", "", ""]
    assert columns["outline"][2] == [20, 0, 119, 0, 119, 79, 20, 79]
    assert columns["outline"][3] is None
