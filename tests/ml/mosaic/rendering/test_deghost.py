"""The hue of most frames: by hand, and with an instrument that moves over the tissue."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ml.mosaic.alignment.canvas import MosaicCanvas
from ml.mosaic.frames.sources import ArraySource
from ml.mosaic.frames.survey import FrameCheck, Survey
from ml.mosaic.rendering.blend import blend_frames
from ml.mosaic.rendering.deghost import HUE_TOLERANCE, MIN_SHARE, agreement, find_common_hue, hue_of
from ml.types import no_progress

TISSUE, METAL = (180, 70, 50), (120, 120, 120)


def _canvas(count: int, step_px: int = 0) -> MosaicCanvas:
    transforms = {i: np.array([[1, 0, step_px * i], [0, 1, 0], [0, 0, 1.0]]) for i in range(count)}
    return MosaicCanvas(100 + step_px * (count - 1), 80, transforms, {})


def _frame(tool_at: int | None = None) -> np.ndarray:
    frame = np.full((80, 100, 3), TISSUE, np.uint8)
    if tool_at is not None:
        frame[:, tool_at : tool_at + 20] = METAL
    return frame


def test_hues_and_their_agreement_equal_hand_worked_values() -> None:
    # 180 and 70 of 180 + 70 + 50 + 20
    hue = hue_of(np.full((1, 1, 3), TISSUE, np.float32))
    np.testing.assert_allclose(hue[0, 0], [0.5625, 0.21875])
    brighter = hue_of(np.full((1, 1, 3), TISSUE, np.float32) * 1.3)
    assert agreement(hue, brighter)[0, 0] > 0.85, "exposure is no difference"
    np.testing.assert_allclose(agreement(hue, hue), [[1.0]])
    apart = hue + np.array([HUE_TOLERANCE, 0], np.float32)
    np.testing.assert_allclose(agreement(hue, apart), [[np.exp(-1)]], rtol=1e-4)
    metal = hue_of(np.full((1, 1, 3), METAL, np.float32))
    np.testing.assert_allclose(agreement(hue, metal), [[MIN_SHARE]])


def test_the_common_hue_is_that_of_the_majority_and_not_the_mean() -> None:
    frames = [_frame(40), _frame(40), _frame(), _frame(), _frame()]
    feather = np.ones((80, 100), np.float32)
    some = [(i, frame.astype(np.float32)) for i, frame in enumerate(frames)]
    hue = find_common_hue(some, feather, _canvas(5))
    assert hue.downsample == 1
    np.testing.assert_allclose(hue.hue[40, 50], [0.5625, 0.21875], atol=2e-3)
    empty = find_common_hue([], feather, _canvas(5))
    assert not empty.hue.any()


def test_a_large_mosaic_is_decided_on_a_small_canvas() -> None:
    canvas = MosaicCanvas(1536, 768, {0: np.eye(3)}, {})
    frame = np.full((768, 1536, 3), METAL, np.float32)
    frame[:, 768:] = TISSUE
    hue = find_common_hue([(0, frame)], np.ones((768, 1536), np.float32), canvas)
    assert (hue.downsample, hue.hue.shape) == (4, (192, 384, 2))
    box = frame[100:200, 900:1000]
    assert hue.share(box, 900, 100).min() > 0.99
    assert hue.share(box, 100, 100).max() < 2 * MIN_SHARE


def test_an_instrument_that_moves_over_the_tissue_is_left_out(tmp_path: Path) -> None:
    frames = [_frame(10 + 14 * i if i < 4 else None) for i in range(9)]
    checks = tuple(FrameCheck(i, i, 1.0, "") for i in range(9))
    nothing = np.zeros((80, 100), np.float32)
    survey = Survey(checks, (100, 80), 1.0, np.ones((80, 100), np.bool_), nothing, False)
    canvas = _canvas(9, step_px=3)
    out = np.zeros((80, canvas.width_px, 3), np.uint8)
    blend_frames(
        ArraySource(frames, 1),
        survey,
        canvas,
        {i: np.ones(3, np.float32) for i in range(9)},
        out=out,
        work_dir=tmp_path,
        progress=no_progress,
    )
    inner = out[10:-10, 10:-10].astype(int)
    assert np.abs(inner - np.array(TISSUE)).max() <= 3, "without it, 19 levels"
