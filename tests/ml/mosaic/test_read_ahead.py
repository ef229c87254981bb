"""Where frames are read ahead, and that nothing else changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ml.imaging.slides.ahead import VARIABLE
from ml.mosaic import read_ahead
from ml.mosaic.read_ahead import AheadSource, frames_ahead
from ml.mosaic.sources import ArraySource, open_source
from tests.ml.mosaic.conftest import write_video

if TYPE_CHECKING:
    from pathlib import Path


def test_a_gpu_reads_ahead_and_a_processor_only_where_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames = [1, 2]
    monkeypatch.setattr(read_ahead, "accelerator", lambda: None)
    assert frames_ahead(frames) is frames
    monkeypatch.setenv(VARIABLE, "2")
    assert frames_ahead(frames) is not frames and list(frames_ahead(frames)) == frames
    monkeypatch.setattr(read_ahead, "accelerator", object)
    monkeypatch.delenv(VARIABLE)
    assert frames_ahead(frames) is not frames
    monkeypatch.setenv(VARIABLE, "0")
    assert frames_ahead(frames) is frames


def test_the_frames_of_a_video_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 255, (64, 80, 3), dtype=np.uint8) for _ in range(12)]
    path = write_video(tmp_path / "a.mp4", pictures, pts_ms=range(0, 480, 40))
    source = open_source(path)
    monkeypatch.setenv(VARIABLE, "1")
    for first in (0, 7, 12):
        found = list(AheadSource(source).frames(first))
        wanted = list(source.frames(first))
        assert [one.pts for one in found] == [one.pts for one in wanted]
        assert all(np.array_equal(a.rgb, b.rgb) for a, b in zip(found, wanted, strict=True))
    assert AheadSource(ArraySource(pictures, 5)).count == 3
