"""Frames that come later: the same map as built at once, and only the new frames cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ml.errors import BadInputError, CancelledError
from ml.evaluation.mosaic.simulate import SweepConfig, simulate_sweep
from ml.geometry import transform_points
from ml.imaging.videos.video import probe_video
from ml.mosaic import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames import survey
from ml.mosaic.registration import keyframes as register
from ml.mosaic.result import MosaicResult
from ml.types import ImageU8
from tests.ml.mosaic.conftest import write_video

if TYPE_CHECKING:
    from tests.ml.mosaic.conftest import Sweep

CONFIG = MosaicConfig(fixed_pattern_frames=18)
# What is kept of a map that grows is kept before the local fit, which is repeated; CONFIG
# shows that the motion model is chosen again.
GLOBAL = MosaicConfig(fixed_pattern_frames=20, local_fit=False, motion_model="similarity")


class Calls(Counter[str]):
    """Counts of measured and of registered frames."""

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> Calls:
        measure, add = survey.measure_frame, register._Registrar.add

        def measured(rgb: ImageU8) -> Any:
            self["measured"] += 1
            return measure(rgb)

        def added(worker: Any, view: Any) -> None:
            self["registered"] += 1
            add(worker, view)

        monkeypatch.setattr(survey, "measure_frame", measured)
        monkeypatch.setattr(register._Registrar, "add", added)
        return self


def assert_same(grown: MosaicResult, at_once: MosaicResult, *, within_px: float) -> None:
    width, height = at_once.frame_size_px
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    assert (grown.width_px, grown.height_px) == (at_once.width_px, at_once.height_px)
    for a, b in zip(grown.frames, at_once.frames, strict=True):
        assert (a.index, a.pts, a.status, a.reason, a.component, a.is_key) == (
            b.index,
            b.pts,
            b.status,
            b.reason,
            b.component,
            b.is_key,
        )
        if a.H_mosaic_from_frame is not None and b.H_mosaic_from_frame is not None:
            grown_xy = transform_points(a.H_mosaic_from_frame, corners)
            other = transform_points(b.H_mosaic_from_frame, corners)
            assert np.abs(grown_xy - other).max() < within_px


@pytest.mark.endurance
def test_growing_from_24_to_40_frames_equals_building_40(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = simulate_sweep(SweepConfig(frames=40, size_px=200, fault_share=0.05))
    at_once = build_mosaic(sweep.frames, tmp_path / "at-once", config=CONFIG)
    out, work = tmp_path / "out", tmp_path / "work"
    first = build_mosaic(sweep.frames[:24], out, config=CONFIG, work_dir=work, grows=True)
    assert len(first.frames) == 24
    assert {"measures.npz", "registration.npz", "loop_keyframes"} < {p.name for p in work.iterdir()}
    calls = Calls().watch(monkeypatch)
    grown = build_mosaic(sweep.frames, out, config=CONFIG, work_dir=work, grows=True)
    usable = sum(frame.status != "skipped" for frame in grown.frames[24:])
    assert calls["measured"] == 16 + 2, "the new ones, and two to know the video again"
    assert calls["registered"] == usable
    assert_same(grown, at_once, within_px=0.01)
    assert (tmp_path / "at-once/mosaic.tif").read_bytes() == (out / "mosaic.tif").read_bytes()


@pytest.mark.endurance
def test_a_longer_span_of_a_video_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video = tmp_path / "sweep.mp4"
    sweep = simulate_sweep(SweepConfig(frames=54, size_px=200, path="loops-slow"))
    write_video(video, sweep.frames, pts_ms=range(0, 40 * 54, 40))
    pts = probe_video(video).frames.pts
    spans = [replace(GLOBAL, start_pts=int(pts[14]), end_pts=int(pts[end])) for end in (38, 50)]
    at_once = build_mosaic(video, tmp_path / "at-once", config=spans[1])
    out, work = tmp_path / "out", tmp_path / "work"
    build_mosaic(video, out, config=spans[0], work_dir=work, grows=True)
    calls, shown = Calls().watch(monkeypatch), list[Path]()
    grown = build_mosaic(
        video, out, config=spans[1], work_dir=work, grows=True, preview=shown.append
    )
    assert calls["measured"] == 12 + 2
    assert shown, "the preview shows the map so far"
    assert_same(grown, at_once, within_px=0.01)


@pytest.mark.slow
def test_a_build_killed_during_growth_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = simulate_sweep(SweepConfig(frames=36, size_px=200, path="loops-slow"))
    at_once = build_mosaic(sweep.frames, tmp_path / "at-once", config=GLOBAL)
    out, work = tmp_path / "out", tmp_path / "work"
    build_mosaic(sweep.frames[:26], out, config=GLOBAL, work_dir=work, grows=True)

    def stop(done: int, total: int, phase: str) -> None:
        if phase == "register" and done > 31:
            raise CancelledError("stopped by the user")

    before = (out / "mosaic.json").read_bytes()
    with pytest.raises(CancelledError):
        build_mosaic(sweep.frames, out, config=GLOBAL, work_dir=work, grows=True, progress=stop)
    assert (out / "mosaic.json").read_bytes() == before, "the map so far stays"
    calls = Calls().watch(monkeypatch)
    grown = build_mosaic(sweep.frames, out, config=GLOBAL, work_dir=work, grows=True)
    assert (calls["measured"], calls["registered"]) == (0, 10)
    assert_same(grown, at_once, within_px=0.01)


@pytest.mark.slow
def test_a_different_video_in_the_same_folder_is_built_from_scratch(
    sweep: Sweep, tmp_path: Path
) -> None:
    other = [np.ascontiguousarray(frame[::-1]) for frame in sweep.frames]
    work = tmp_path / "work"
    build_mosaic(sweep.frames[:8], tmp_path / "out", work_dir=work, grows=True)
    grown = build_mosaic(other, tmp_path / "out", work_dir=work, grows=True)
    assert_same(grown, build_mosaic(other, tmp_path / "other"), within_px=1e-9)
    shorter = build_mosaic(other[:6], tmp_path / "out", work_dir=work, grows=True)
    assert [frame.status for frame in shorter.frames] == ["registered"] * 6


def test_growing_without_a_work_dir_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="work_dir"):
        build_mosaic([np.zeros((64, 64, 3), np.uint8)] * 2, tmp_path / "out", grows=True)
