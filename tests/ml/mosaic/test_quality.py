"""Unusable frames are found with their reason, and good ones are left alone."""

from __future__ import annotations

import numpy as np

from ml.evaluation.mosaic.simulate import SweepConfig, simulate_sweep
from ml.mosaic import MosaicConfig
from ml.mosaic.quality import FrameMeasure, measure_frame, verdicts
from ml.mosaic.result import REASON_CODES

UNSEEN_HERE = "unrelated"
"""Told by registration, not by the look of one frame."""


def test_simulated_faults_are_found_by_name() -> None:
    found = wanted = false = named = 0
    for seed in (5, 6, 7, 8, 9, 10):
        sweep = simulate_sweep(SweepConfig(frames=80, size_px=240, fault_share=0.25, seed=seed))
        measures = [measure_frame(frame) for frame in sweep.frames]
        codes = [code for code, _ in verdicts(measures, [("", "")] * 80, MosaicConfig())]
        assert set(codes) - {""} <= set(REASON_CODES)
        to_find = {i: fault for i, fault in sweep.faults.items() if fault != UNSEEN_HERE}
        wanted += len(to_find)
        found += sum(bool(codes[i]) for i in to_find)
        named += sum(codes[i] == fault for i, fault in to_find.items())
        false += sum(bool(code) for i, code in enumerate(codes) if i not in sweep.faults)
    assert found >= 0.95 * wanted
    assert false <= 0.05 * (found + false)
    assert named >= 0.9 * found


def test_a_colourless_video_is_not_taken_for_instruments() -> None:
    sweep = simulate_sweep(SweepConfig(frames=12, size_px=240))
    grey = [np.repeat(frame.mean(axis=2, keepdims=True), 3, axis=2) for frame in sweep.frames]
    measures = [measure_frame(frame.astype(np.uint8)) for frame in grey]
    assert {code for code, _ in verdicts(measures, [("", "")] * 12, MosaicConfig())} == {""}


def test_a_verdict_that_stands_already_stays() -> None:
    fine = FrameMeasure(sharpness=0.1, brightness=100, colour=90, floor=30)
    found = verdicts([fine, fine], [("", ""), ("size", "too small")], MosaicConfig())
    assert found == [("", ""), ("size", "too small")]


def test_the_reason_says_what_was_measured() -> None:
    fine = FrameMeasure(sharpness=0.1, brightness=100, colour=90, floor=30)
    soft = FrameMeasure(sharpness=0.05, brightness=100, colour=90, floor=30)
    found = verdicts([fine, fine, soft], [("", "")] * 3, MosaicConfig())
    assert found[2] == ("blurred", "blurred: sharpness 50% of its neighbours'")
    assert verdicts([], [], MosaicConfig()) == []
