"""An encoder whose answers are known, and regions for it."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.types import ArrayF32


class MeanGrey:
    """The vector is the mean brightness: changed by a stain shift, not by a flip or a turn."""

    def embed(self, image, polygon=None, mpp=None) -> ArrayF32:
        left, top, right, bottom = (
            (0, 0, image.shape[1], image.shape[0])
            if polygon is None
            else (round(v) for v in polygon.bounds)
        )
        return np.array([image[top:bottom, left:right].mean()], np.float32)


@pytest.fixture
def records(tmp_path):
    out = []
    for patient in range(3):
        for label, shade in (("dark", 90), ("light", 200)):
            image = np.zeros((64, 80, 3), np.uint8)
            image[...] = shade + 3 * patient
            image[20:40, 10:40] = (120, 60, 140 + 10 * patient)
            path = tmp_path / f"{patient}{label}.png"
            Image.fromarray(image).save(path)
            out.append(RoiRecord(path, f"P{patient}", label, None, None))
    return out


class MeanColour(MeanGrey):
    def embed(self, image, polygon=None, mpp=None):
        return image.reshape(-1, 3).mean(axis=0).astype(np.float32)


def _section(path, shift, turn):
    """A wedge of tissue whose darkness grows along it, so that every place has its own grey."""
    y, x = np.mgrid[0:900, 0:900]
    cosine, sine = np.cos(turn), np.sin(turn)
    u = cosine * (x - 450 - shift) + sine * (y - 450)
    v = -sine * (x - 450 - shift) + cosine * (y - 450)
    inside = (np.abs(u) < 300) & (np.abs(v) < 120 + u / 4)
    image = np.full((900, 900, 3), 240, np.uint8)
    image[inside] = np.stack([70 + u / 6, 40 + u / 10, 110 + v / 8], axis=-1)[inside]
    Image.fromarray(image).save(path)
    return path


@pytest.fixture
def section():
    """Writes a section to a path: ``section(path, shift, turn)``."""
    return _section


@pytest.fixture
def mean_grey():
    return MeanGrey()


@pytest.fixture
def mean_colour():
    return MeanColour()
