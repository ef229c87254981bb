"""A recording whose clock starts again: one picture for each frame, in all that shows frames."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rest_framework.test import APIClient

from ml.imaging.videos.video import iter_frames
from portal.annotations.formats.pictures import window_pixels
from portal.annotations.formats.types import plane_of
from portal.archive.models import Case, Video
from portal.archive.selectors.frames import frame_pixels
from portal.archive.storage.files import resolve
from tests.ml.imaging.conftest import number_of
from tests.ml.imaging.videos.test_frame_access import Recipe, write
from tests.portal.archive.support import run_job

pytestmark = pytest.mark.django_db
SIZE = (192, 144)


@pytest.fixture
def joined(case: Case, receive: Any, quick: None, tmp_path: Path) -> Video:
    """Two parts of 30 numbered frames, each with a clock that begins at the same time."""
    recipe = Recipe("joined.mpg", "mpeg2video", [range(30), range(30, 60)], container="vob")
    received = receive(case, write(recipe, tmp_path), "joined.mpg")
    run_job(received.job)
    video: Video = received.item
    video.refresh_from_db()
    return video


def test_every_place_shows_the_same_frame(api: APIClient, joined: Video) -> None:
    assert (joined.state, joined.frame_count) == ("ready", 60)
    assert any("clock" in warning for warning in joined.warnings)
    rows = api.get(f"/api/v1/videos/{joined.pk}/frames/").json()["frames"]
    assert np.diff([row["time_s"] for row in rows]) == pytest.approx([0.04] * 59, abs=1e-6)
    canvas = joined.canvas
    assert canvas is not None
    for n in (3, 29, 30, 33, 59):
        pts = rows[n]["pts"]
        answer = api.get(f"/api/v1/canvases/{canvas.pk}/frames/{pts}.jpg")
        assert number_of(np.asarray(Image.open(io.BytesIO(answer.content)).convert("RGB"))) == n
        assert number_of(frame_pixels(canvas, pts)) == n, "embeddings, thumbnails, training"
        assert number_of(window_pixels(plane_of(canvas), (0, 0, *SIZE), SIZE, pts)) == n, "picture"
    played = [number_of(rgb) for _, _, rgb in iter_frames(resolve(joined.media_path))]
    assert played == list(range(60))
    shown = api.get(f"/api/v1/canvases/{canvas.pk}/").json()["video"]
    strip = np.asarray(Image.open(io.BytesIO(api.get(shown["filmstrip_url"]).content)))
    small = [strip[:, 120 * n : 120 * (n + 1)] for n in (5, 40)]
    assert [number_of(np.asarray(Image.fromarray(image).resize(SIZE))) for image in small] == [
        5,
        40,
    ]
