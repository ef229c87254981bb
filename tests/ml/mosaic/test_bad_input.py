"""Videos as they come, through the whole engine: a map or one clear error, and no frame lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from ml.errors import MosaicError
from ml.evaluation.mosaic.truth import score_against_truth
from ml.mosaic import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.gaps import NothingRegisteredError
from ml.mosaic.result import MosaicResult
from tests.ml.mosaic.conftest import make_sweep, write_video

if TYPE_CHECKING:
    from tests.ml.mosaic.conftest import Sweep


GLOBAL = MosaicConfig(local_fit=False)  # bad input is refused before the local fit


def assert_nothing_lost(result: MosaicResult, count: int) -> None:
    """Every frame is in a component or says why not; the spans and the gaps hold them all."""
    assert [frame.index for frame in result.frames] == list(range(count))
    for frame in result.frames:
        assert (frame.status == "registered") == (not frame.reason) == (not frame.reason_code)
        assert (frame.component is None) == (frame.H_mosaic_from_frame is None)
    in_gaps = sum(gap.frames for gap in result.gaps)
    assert in_gaps + sum(component.registered_count for component in result.components) == count


@pytest.mark.slow
def test_a_variable_frame_rate_retains_its_time_stamps(slow_sweep: Sweep, tmp_path: Path) -> None:
    pauses = np.random.default_rng(3).integers(10, 200, len(slow_sweep.frames))
    pts_ms = np.cumsum(pauses).tolist()
    video = write_video(tmp_path / "a.mkv", slow_sweep.frames, pts_ms=pts_ms)
    mosaic = build_mosaic(video, tmp_path / "out", config=GLOBAL)
    assert_nothing_lost(mosaic, 30)
    assert [frame.pts for frame in mosaic.frames] == pts_ms
    np.testing.assert_allclose([f.time_s for f in mosaic.frames], np.array(pts_ms) / 1000)
    assert mosaic.registered_count == 30
    assert score_against_truth(mosaic, slow_sweep.truth, size_px=(200, 200)).mean_px < 1.5


@pytest.mark.slow
def test_after_a_change_of_resolution_the_first_size_is_kept(
    slow_sweep: Sweep, tmp_path: Path
) -> None:
    """In another shape, too: wider and lower."""
    video, half = tmp_path / "a.ts", [cv2.resize(f, (240, 176)) for f in slow_sweep.frames[15:]]
    write_video(video, slow_sweep.frames[:15], pts_ms=range(0, 600, 40))
    write_video(video, half, pts_ms=range(600, 1200, 40))
    mosaic = build_mosaic(video, tmp_path / "out", config=GLOBAL)
    assert_nothing_lost(mosaic, len(mosaic.frames))
    assert len(mosaic.frames) >= 28, "a decoder may lose a frame where the stream restarts"
    assert mosaic.frame_size_px == (200, 200)
    assert len(mosaic.components) == 1
    assert {f.reason_code for f in mosaic.frames} <= {"", "blurred"}
    assert mosaic.registered_count >= 0.8 * len(mosaic.frames)


def _smoke(frame: np.ndarray, seed: int) -> np.ndarray:
    cloud = np.random.default_rng(seed).uniform(0, 1, (5, 5)).astype(np.float32)
    size = (frame.shape[1], frame.shape[0])
    thick = 0.62 + 0.3 * cv2.resize(cloud, size, interpolation=cv2.INTER_CUBIC)
    thick = np.clip(thick, 0, 0.95)[..., None] * (frame.max(axis=2, keepdims=True) > 5)
    return np.clip(frame * (1 - thick) + 165 * thick, 0, 255).astype(np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("is_moving", [False, True], ids=["resting", "moving-on"])
def test_ten_seconds_of_smoke_are_reported_and_both_sides_remain(
    is_moving: bool, tmp_path: Path
) -> None:
    sweep = make_sweep(55, pace=0.5).frames
    smoked = sweep[15:40] if is_moving else [sweep[15]] * 25
    after = sweep[40:] if is_moving else sweep[16:31]
    frames = [*sweep[:15], *(_smoke(f, i) for i, f in enumerate(smoked)), *after]
    video = write_video(tmp_path / "a.mp4", frames, pts_ms=range(0, 400 * len(frames), 400))
    mosaic = build_mosaic(video, tmp_path / "out", config=GLOBAL)
    assert_nothing_lost(mosaic, 55)
    assert {f.reason_code for f in mosaic.frames[15:40]} == {"smoke"}
    (gap,) = mosaic.gaps
    assert (gap.frames, gap.reason_code) == (25, "smoke")
    assert (gap.span.first_s, gap.span.last_s) == (6.0, 15.6)
    assert gap.text == "0:06.0 to 0:15.6 (25 frames): veiled by smoke or water"
    sides = {frame.component for i, frame in enumerate(mosaic.frames) if not 15 <= i < 40}
    assert sides == ({0, 1} if is_moving else {0})


@pytest.mark.slow
def test_a_cut_in_a_video_gives_two_components_with_their_seconds(
    slow_sweep: Sweep, tmp_path: Path
) -> None:
    other = [np.ascontiguousarray(f[::-1, :, ::-1]) for f in slow_sweep.frames[:10]]
    frames = [*slow_sweep.frames[:15], *other]
    video = write_video(tmp_path / "a.mp4", frames, pts_ms=range(0, 1000, 40))
    mosaic = build_mosaic(video, tmp_path / "out", config=GLOBAL)
    assert_nothing_lost(mosaic, 25)
    spans = [[(s.first_s, s.last_s) for s in component.spans] for component in mosaic.components]
    assert spans == [[(0.0, 0.56)], [(0.6, 0.96)]]


@pytest.mark.slow
def test_a_scope_that_starts_and_ends_in_the_dark_is_mapped_between(
    slow_sweep: Sweep, tmp_path: Path
) -> None:
    black = [np.zeros((200, 200, 3), np.uint8)] * 15
    frames = [*black, *slow_sweep.frames[:15], *black[:5]]
    video = write_video(tmp_path / "a.mp4", frames, pts_ms=range(0, 1400, 40))
    mosaic = build_mosaic(video, tmp_path / "out", config=GLOBAL)
    assert_nothing_lost(mosaic, 35)
    assert [gap.reason_code for gap in mosaic.gaps] == ["dark", "dark"]
    assert [f.status for f in mosaic.frames[15:30]] == ["registered"] * 15


@pytest.mark.slow
def test_a_static_video_is_one_view_whatever_its_noise(slow_sweep: Sweep, tmp_path: Path) -> None:
    rng, still = np.random.default_rng(0), slow_sweep.frames[3]
    noisy = [np.clip(still + rng.normal(0, 3, still.shape), 0, 255) for _ in range(20)]
    frames = [frame.astype(np.uint8) for frame in noisy]
    video = write_video(tmp_path / "a.mp4", frames, pts_ms=range(0, 800, 40))
    mosaic = build_mosaic(video, tmp_path / "out", config=GLOBAL)
    assert_nothing_lost(mosaic, 20)
    assert mosaic.registered_count == 20
    assert sum(frame.is_key for frame in mosaic.frames) == 1
    assert max(mosaic.width_px, mosaic.height_px) <= 200


def test_two_overlapping_frames_give_a_mosaic_and_unrelated_ones_an_error(
    slow_sweep: Sweep, tmp_path: Path
) -> None:
    near = write_video(tmp_path / "near.mp4", slow_sweep.frames[:2], pts_ms=[0, 40])
    mosaic = build_mosaic(near, tmp_path / "out", config=GLOBAL)
    assert_nothing_lost(mosaic, 2)
    assert mosaic.registered_count == 2
    before = (tmp_path / "out/mosaic.json").read_bytes()
    strangers = [slow_sweep.frames[0], slow_sweep.frames[29][::-1]]
    apart = write_video(tmp_path / "apart.mp4", strangers, pts_ms=[0, 40])
    with pytest.raises(NothingRegisteredError, match=r"\b2 (usable )?frames\b"):
        build_mosaic(apart, tmp_path / "out", config=GLOBAL)
    assert (tmp_path / "out/mosaic.json").read_bytes() == before


def test_a_black_video_raises_an_error_with_its_seconds(tmp_path: Path) -> None:
    black = [np.zeros((120, 120, 3), np.uint8)] * 20
    video = write_video(tmp_path / "a.mp4", black, pts_ms=range(0, 800, 40))
    with pytest.raises(MosaicError, match=r"too dark: 0:00\.0"):
        build_mosaic(video, tmp_path / "out", config=GLOBAL)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_stills_of_different_operations_are_not_stitched(
    tessera_data: Path, tmp_path: Path
) -> None:
    by_operation: dict[str, Path] = {}
    for path in sorted((tessera_data / "endoscopy/laparoscopy-stills").glob("*.jpg")):
        by_operation.setdefault(path.stem.split("-frame-")[0], path)
    stills = [_small(path) for path in by_operation.values()]
    assert len(stills) >= 8
    try:
        mosaic = build_mosaic(stills, tmp_path / "out", config=GLOBAL)
    except NothingRegisteredError as error:
        assert len(error.frames) == len(stills)
    else:
        pytest.fail(f"{mosaic.registered_count} unrelated stills were joined")


@pytest.mark.endurance
def test_the_sinus_raises_an_error_or_gives_consistent_components(
    tessera_data: Path, tmp_path: Path
) -> None:
    folder = tessera_data / "endoscopy/sinus-4584"
    frames = [_small(path) for path in sorted(folder.glob("*.jpg"))]
    try:
        mosaic = build_mosaic(frames, tmp_path / "out", config=GLOBAL)
    except NothingRegisteredError as error:
        assert len(error.frames) == len(frames)
        return
    assert_nothing_lost(mosaic, len(frames))
    for component in mosaic.components:
        assert component.quality.median_error_px is not None
        assert component.quality.median_error_px < 3.0


@pytest.mark.endurance
def test_a_scope_moving_over_a_laparoscopy_still_is_mapped_to_a_pixel(
    tessera_data: Path, tmp_path: Path
) -> None:
    still = sorted((tessera_data / "endoscopy/laparoscopy-stills").glob("*.jpg"))[0]
    scene = np.ascontiguousarray(cv2.imread(str(still))[:, :, ::-1])
    truth, frames = {}, []
    for i in range(40):
        c, s = np.cos(0.01 * i), np.sin(0.01 * i)
        matrix = np.array([[c, -s, 150 + 9 * i], [s, c, 160 + 40 * np.sin(i / 6)], [0, 0, 1.0]])
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        frames.append(np.asarray(cv2.warpPerspective(scene, matrix, (480, 270), flags=flags)))
        truth[i] = matrix
    mosaic = build_mosaic(frames, tmp_path / "out", config=GLOBAL)
    assert mosaic.registered_count == 40
    assert score_against_truth(mosaic, truth, size_px=(480, 270)).mean_px < 1.0


def _small(path: Path) -> np.ndarray:
    pixels = cv2.imread(str(path))[:, :, ::-1]
    size = (640, round(pixels.shape[0] * 640 / pixels.shape[1]))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA))
