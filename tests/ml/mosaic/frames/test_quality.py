"""Unusable frames are found with their reason, and good ones stay."""

from __future__ import annotations

import numpy as np
import pytest

from ml.evaluation.mosaic.simulate import SweepConfig, simulate_sweep
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.quality import FrameMeasure, measure_frame, verdicts
from ml.mosaic.result import REASON_CODES

ONLY_REGISTRATION = "unrelated"
"""Told by registration, not by the look of one frame."""


@pytest.mark.slow
def test_simulated_faults_are_found_by_name() -> None:
    found_count = expected_count = false_count = named_count = 0
    for seed in (5, 6, 7, 8, 9, 10):
        sweep = simulate_sweep(SweepConfig(frames=80, size_px=240, fault_share=0.25, seed=seed))
        measures = [measure_frame(frame) for frame in sweep.frames]
        codes = [code for code, _ in verdicts(measures, [("", "")] * 80, MosaicConfig())]
        assert set(codes) - {""} <= set(REASON_CODES)
        to_find = {i: fault for i, fault in sweep.faults.items() if fault != ONLY_REGISTRATION}
        expected_count += len(to_find)
        found_count += sum(bool(codes[i]) for i in to_find)
        named_count += sum(codes[i] == fault for i, fault in to_find.items())
        false_count += sum(bool(code) for i, code in enumerate(codes) if i not in sweep.faults)
    assert found_count >= 0.95 * expected_count
    assert false_count <= 0.05 * (found_count + false_count)
    assert named_count >= 0.9 * found_count


def test_a_colourless_video_is_not_taken_for_instruments() -> None:
    sweep = simulate_sweep(SweepConfig(frames=12, size_px=240))
    grey = [np.repeat(frame.mean(axis=2, keepdims=True), 3, axis=2) for frame in sweep.frames]
    measures = [measure_frame(frame.astype(np.uint8)) for frame in grey]
    assert {code for code, _ in verdicts(measures, [("", "")] * 12, MosaicConfig())} == {""}


def test_an_existing_verdict_is_not_replaced() -> None:
    fine = FrameMeasure(sharpness=0.1, brightness=100, colour=90, floor=30)
    found_count = verdicts([fine, fine], [("", ""), ("size", "too small")], MosaicConfig())
    assert found_count == [("", ""), ("size", "too small")]


def test_the_reason_contains_the_measurement() -> None:
    fine = FrameMeasure(sharpness=0.1, brightness=100, colour=90, floor=30)
    soft = FrameMeasure(sharpness=0.05, brightness=100, colour=90, floor=30)
    found_count = verdicts([fine, fine, soft], [("", "")] * 3, MosaicConfig())
    assert found_count[2] == ("blurred", "blurred: sharpness 50% of its neighbours'")
    assert verdicts([], [], MosaicConfig()) == []
