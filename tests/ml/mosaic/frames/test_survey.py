"""The fixed pattern; a clock; a long video that hardly moves; the growing preview."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.imaging.samples.video import make_sample_video
from ml.imaging.videos.video import probe_video
from ml.mosaic import build_mosaic
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames import fixed_pattern
from ml.mosaic.frames.sources import ArraySource
from ml.mosaic.frames.survey import measure_frames, survey_of
from ml.types import no_progress

if TYPE_CHECKING:
    from tests.ml.mosaic.conftest import Sweep


def _survey(frames: list[np.ndarray]):  # type: ignore[no-untyped-def]
    source = ArraySource(frames, 1)
    seen = measure_frames(source, config=MosaicConfig(), progress=no_progress)
    return survey_of(seen, config=MosaicConfig())


def test_burnt_in_text_is_masked_and_tissue_is_not(sweep: Sweep) -> None:
    frames = [frame.copy() for frame in [*sweep.frames, *sweep.frames[::-1]]]
    clean = _survey(frames).mask
    for frame in frames:
        cv2.putText(frame, "12:40", (70, 100), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (255, 255, 255), 2)
    masked = clean & ~_survey(frames).mask
    assert masked[84:104, 70:120].mean() > 0.5
    assert masked[120:180].mean() < 0.02


def test_a_fixed_grain_is_a_fibre_bundle_and_a_still_scene_is_not(sweep: Sweep) -> None:
    moving = [*sweep.frames, *sweep.frames[::-1]]
    grain = cv2.GaussianBlur(np.random.default_rng(0).normal(0, 40, (200, 200, 1)), (0, 0), 1.0)
    fibres = [np.clip(f + grain[..., None], 0, 255).astype(np.uint8) for f in moving]
    assert _survey(fibres).is_fibre
    assert not _survey(moving).is_fibre
    assert not _survey([fibres[0]] * 14).is_fibre


@pytest.mark.parametrize(("side_px", "work_px"), [(640, 1000), (400, 1440)])
def test_the_working_size_follows_the_visible_detail_up_to_a_factor_of_two(
    sweep: Sweep, side_px: int, work_px: int
) -> None:
    survey = _survey(_in_black([*sweep.frames, *sweep.frames[::-1]], side_px))
    assert survey.size_px == (900, 700)
    assert survey.scale * 900 == pytest.approx(min(900, work_px), rel=0.03)
    assert (
        survey.mask.shape
        == survey.pattern.shape
        == (
            round(700 * survey.scale),
            round(900 * survey.scale),
        )
    )
    rows, columns = np.nonzero(survey.mask)
    middle = np.array([columns.mean(), rows.mean()]) / survey.scale
    assert np.allclose(middle, [20 + side_px / 2, 20 + side_px / 2], atol=6)


@pytest.mark.slow
def test_full_frame_views_and_fibre_bundles_keep_their_size(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving = [*sweep.frames, *sweep.frames[::-1]]
    frames = [cv2.resize(f[50:150, 50:150], (900, 900)) for f in moving]
    mask = np.full((900, 900), 255, np.uint8)
    seen = measure_frames(ArraySource(frames, 1), config=MosaicConfig(), progress=no_progress)
    assert survey_of(seen, config=MosaicConfig(), mask=mask).scale == 720 / 900
    monkeypatch.setattr(fixed_pattern, "_fixed_pattern", _fibres)
    fibres = _survey(_in_black(moving, 400))
    assert fibres.is_fibre and fibres.scale == 720 / 900


def _fibres(greys: list[np.ndarray]) -> tuple[np.ndarray, bool]:
    return np.zeros(greys[0].shape, np.float32), True


def _in_black(frames: list[np.ndarray], side_px: int) -> list[np.ndarray]:
    """Views of that side in frames of 900 x 700 px."""
    wide = []
    for frame in frames:
        picture = np.zeros((700, 900, 3), np.uint8)
        picture[20 : 20 + side_px, 20 : 20 + side_px] = cv2.resize(frame, (side_px, side_px))
        wide.append(picture)
    return wide


def test_a_still_video_has_one_key_frame(sweep: Sweep, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    still = sweep.frames[3].astype(float)
    frames = [np.clip(still + rng.normal(0, 2, still.shape), 0, 255) for _ in range(16)]
    mosaic = build_mosaic([f.astype(np.uint8) for f in frames], tmp_path / "out")
    assert mosaic.registered_count == 16
    assert sum(frame.is_key for frame in mosaic.frames) == 1


@pytest.mark.slow
def test_a_span_of_a_video_has_its_seconds(tmp_path: Path) -> None:
    video = tmp_path / "sweep.mp4"
    make_sample_video(video, frames=220, size_px=200)
    pts = probe_video(video).frames.pts
    seen: list[Path] = []
    span = MosaicConfig(start_pts=int(pts[10]), end_pts=int(pts[27]))
    short = build_mosaic(video, tmp_path / "part", config=span, preview=seen.append)
    assert [frame.index for frame in short.frames] == list(range(10, 28))
    np.testing.assert_allclose([f.time_s for f in short.frames], np.arange(10, 28) / 25)
    assert short.registered_count >= 12
    first = next(frame for frame in short.frames if frame.component == short.components[0].index)
    assert short.components[0].spans[0].first_s == pytest.approx(first.time_s)
    assert first.time_s >= 0.4
    assert seen
    with pytest.raises(BadInputError, match="span"):
        build_mosaic(video, tmp_path / "none", config=MosaicConfig(start_pts=int(pts[-1]) + 9))
