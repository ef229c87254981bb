"""Regions on video frames: each frame is read once, with and without read-ahead."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ml.errors import EmptyRegionError
from portal.archive.models import Canvas, CanvasKind
from portal.embeddings.tasks import regions

SQUARE = {"type": "Polygon", "coordinates": [[[1, 1], [9, 1], [9, 9], [1, 9], [1, 1]]]}


def roi(pts):
    return SimpleNamespace(frame_pts=pts, geometry=SQUARE)


@pytest.mark.parametrize("readers", ["0", "1"])
def test_vectors_come_in_order_and_each_frame_is_read_once(monkeypatch, readers):
    monkeypatch.setenv("TESSERA_READERS", readers)
    read = []

    def frame_pixels(canvas, pts):
        read.append(pts)
        return np.full((12, 12, 3), pts, np.uint8)

    def embed_image(image, polygon, *, mpp, progress):
        if image[0, 0, 0] == 40:
            raise EmptyRegionError("all black")
        return int(image[0, 0, 0]), mpp

    monkeypatch.setattr(regions, "frame_pixels", frame_pixels)
    canvas = Canvas(kind=CanvasKind.VIDEO, pixels_path="a.mp4", mpp_x=0.25, mpp_y=1.0)
    with regions.regions_open(SimpleNamespace(embed_image=embed_image), canvas) as embed:
        embedded = embed([roi(20), roi(20), roi(None), roi(40), roi(60)], None)
    assert embedded[:2] == [(20, 0.5)] * 2 and embedded[4] == (60, 0.5)
    assert "has no frame" in str(embedded[2]) and "all black" in str(embedded[3])
    assert read == [20, 40, 60]
