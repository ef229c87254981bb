"""Keyframes read again for the local fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ml.errors import BadInputError
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.sources import ArraySource, SourceFrame
from ml.mosaic.frames.survey import measure_frames, survey_of
from ml.mosaic.local_mesh.views import KeyframeViews
from ml.types import no_progress
from tests.ml.mosaic.conftest import Sweep


class _Losing(ArraySource):
    """Frames of which some cannot be read any more."""

    lost: tuple[int, ...] = ()

    def frames(self, first: int = 0) -> Iterator[SourceFrame]:
        for frame in super().frames(first):
            rgb = None if frame.index in self.lost else frame.rgb
            yield SourceFrame(frame.index, frame.pts, rgb)


def test_missing_keyframes_are_reported_and_not_treated_as_dark(
    slow_sweep: Sweep, tmp_path: Path
) -> None:
    source = _Losing(slow_sweep.frames[:6], 1)
    measures = measure_frames(source, config=MosaicConfig(), progress=no_progress)
    survey = survey_of(measures, config=MosaicConfig())
    views = KeyframeViews.read(source, survey, [0, 2, 4], tmp_path)
    assert all(np.asarray(mask).any(axis=(1, 2)).all() for mask in views.masks)
    source.lost = (2,)
    with pytest.raises(BadInputError, match="1 of 3"):
        KeyframeViews.read(source, survey, [0, 2, 4], tmp_path)
    source.lost = (0, 2, 4)
    with pytest.raises(BadInputError, match="3 of 3"):
        KeyframeViews.read(source, survey, [0, 2, 4], tmp_path)
