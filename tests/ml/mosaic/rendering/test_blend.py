"""Blending: constant frames stay constant, tiles on disk equal tiles in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ml.mosaic.alignment.canvas import MosaicCanvas, work_from_frame
from ml.mosaic.frames.sources import ArraySource, SourceFrame
from ml.mosaic.frames.survey import FrameCheck, Survey
from ml.mosaic.rendering import blend
from ml.mosaic.rendering.blend import blend_frames, key_pixels, rim_weight
from ml.types import no_progress


def _survey(n: int) -> Survey:
    checks = tuple(FrameCheck(i, i, 1.0, "") for i in range(n))
    mask = np.ones((80, 80), np.bool_)
    return Survey(checks, (80, 80), 1.0, mask, np.zeros((80, 80), np.float32), False)


def _blend(frames: list[np.ndarray], folder: Path) -> np.ndarray:
    canvas = MosaicCanvas(
        80 + 30 * (len(frames) - 1),
        80,
        {i: np.array([[1, 0, 30.0 * i], [0, 1, 0], [0, 0, 1]]) for i in range(len(frames))},
        {},
    )
    out = np.zeros((80, canvas.width_px, 3), np.uint8)
    gains = {i: np.ones(3, np.float32) for i in range(len(frames))}
    blend_frames(
        ArraySource(frames, 1),
        _survey(len(frames)),
        canvas,
        gains,
        out=out,
        work_dir=folder,
        progress=no_progress,
    )
    return out


def test_constant_frames_blend_to_their_value(tmp_path: Path) -> None:
    out = _blend([np.full((80, 80, 3), 120, np.uint8)] * 3, tmp_path)
    inner = out[4:-4, 4:-4]
    assert np.abs(inner.astype(int) - 120).max() <= 1
    assert not list(tmp_path.iterdir()), "temporary tiles are gone"


def test_frames_of_different_brightness_blend_without_a_step(tmp_path: Path) -> None:
    frames = [np.full((80, 80, 3), v, np.uint8) for v in (100, 140)]
    row = _blend(frames, tmp_path)[40, 5:-5, 0].astype(int)
    assert row[0] <= 104
    assert row[-1] >= 136
    assert np.abs(np.diff(row)).max() <= 6


def test_blending_on_disk_gives_the_same_pixels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    frames = [rng.integers(40, 200, (80, 80, 3), np.uint8) for _ in range(4)]
    expected = _blend(frames, tmp_path)
    store = blend.TileStore
    monkeypatch.setattr(blend, "TILE_PX", 32)
    monkeypatch.setattr(blend, "TileStore", lambda folder: store(folder, capacity=2))
    np.testing.assert_array_equal(_blend(frames, tmp_path), expected)


def test_the_rim_has_weight_zero_and_the_centre_the_largest() -> None:
    weight = rim_weight(_survey(1))
    assert weight[0, 0] == 0
    assert weight.max() == 1
    assert weight[40, 40] > 0.95


def test_working_coordinates_keep_pixel_centres() -> None:
    point = work_from_frame(0.5) @ np.array([0.5, 0.5, 1.0])
    np.testing.assert_allclose(point, [0.0, 0.0, 1.0])


def test_a_canvas_without_frames_is_black(tmp_path: Path) -> None:
    out: Any = np.zeros((10, 10, 3), np.uint8)
    empty: Any = SimpleNamespace(transforms={}, width_px=10, height_px=10)
    blend_frames(
        ArraySource([np.zeros((80, 80, 3), np.uint8)], 1),
        _survey(1),
        empty,
        {},
        out=out,
        work_dir=tmp_path,
        progress=no_progress,
    )
    assert not out.any()


def test_a_part_decodes_only_its_span() -> None:
    class Counting(ArraySource):
        decoded = 0

        def frames(self, first: int = 0) -> Iterator[SourceFrame]:
            for frame in super().frames(first):
                self.decoded += 1
                yield frame

    source = Counting([np.full((80, 80, 3), 90, np.uint8)] * 40, 1)
    canvas = MosaicCanvas(80, 80, {12: np.eye(3), 15: np.eye(3)}, {})
    assert [at for at, _ in key_pixels(source, _survey(40), canvas)] == [12, 15]
    assert source.decoded == 5, "12 to 15, and one to see that they are over"
