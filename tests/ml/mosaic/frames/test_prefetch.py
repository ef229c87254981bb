"""Prefetching of frames, which changes nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ml.imaging.slides.prefetch import VARIABLE
from ml.mosaic.frames import prefetch as read_ahead
from ml.mosaic.frames.prefetch import PrefetchedSource, prefetched_frames
from ml.mosaic.frames.sources import ArraySource, open_source
from tests.ml.mosaic.conftest import write_video

if TYPE_CHECKING:
    from pathlib import Path


def test_frames_are_prefetched_with_a_gpu_or_if_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames = [1, 2]
    monkeypatch.setattr(read_ahead, "gpu_compute", lambda: None)
    assert prefetched_frames(frames) is frames
    monkeypatch.setenv(VARIABLE, "2")
    assert prefetched_frames(frames) is not frames and list(prefetched_frames(frames)) == frames
    monkeypatch.setattr(read_ahead, "gpu_compute", object)
    monkeypatch.delenv(VARIABLE)
    assert prefetched_frames(frames) is not frames
    monkeypatch.setenv(VARIABLE, "0")
    assert prefetched_frames(frames) is frames


def test_prefetching_does_not_change_the_frames_of_a_video(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 255, (64, 80, 3), dtype=np.uint8) for _ in range(12)]
    path = write_video(tmp_path / "a.mp4", pictures, pts_ms=range(0, 480, 40))
    source = open_source(path)
    monkeypatch.setenv(VARIABLE, "1")
    for first in (0, 7, 12):
        items = list(PrefetchedSource(source).frames(first))
        wanted = list(source.frames(first))
        assert [frame.pts for frame in items] == [frame.pts for frame in wanted]
        assert all(np.array_equal(a.rgb, b.rgb) for a, b in zip(items, wanted, strict=True))
    assert PrefetchedSource(ArraySource(pictures, 5)).count == 3
