"""A small suite: four patients, tissue of two structures, tiles to learn from."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from ml.roi.stain.deconvolution import RUIFROK_HE, WHITE

SIDE = 224
UNIT = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)


def stained_dots(radius, *, seed=0, strength=(1.0, 1.0), side=SIDE):
    """(side, side, 3) uint8: nuclei of haematoxylin on eosin, their size the only difference."""
    rng = np.random.default_rng(seed)
    amount = np.zeros((side, side, 2), np.float32)
    amount[..., 1] = 0.25 + rng.normal(0, 0.02, (side, side))
    for _ in range(side * side // (14 * radius * radius)):
        centre = (int(rng.integers(side)), int(rng.integers(side)))
        cv2.circle(amount, centre, radius, (0.7, 0.2, 0), -1)
    density = (cv2.GaussianBlur(amount, (0, 0), 0.7) * strength) @ UNIT
    return np.clip((WHITE + 1) * 10.0**-density - 0.5, 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """A data folder: ``rois/``, ``tiles/`` with ``index.csv``, and ``suite.toml``."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "rois").mkdir()
    rows = ["image,patient,label,mpp,geometry"]
    for patient in range(4):
        for label, radius in (("small", 3), ("large", 9)):
            for copy in range(2):
                name = f"{patient}{label}{copy}.png"
                strength = (0.6 + 0.2 * patient, 1.3 - 0.2 * patient)
                pixels = stained_dots(radius, seed=10 * patient + copy, strength=strength)
                Image.fromarray(pixels).save(folder / "rois" / name)
                rows.append(f"{name},P{patient},{label},,")
    (folder / "rois" / "rois.csv").write_text("\n".join(rows) + "\n")
    (folder / "tiles").mkdir()
    table = ["file,use,patient,label"]
    for number in range(6):
        Image.fromarray(stained_dots(3 + number, seed=100 + number)).save(
            folder / "tiles" / f"{number}.png"
        )
        table.append(f"{number}.png,train,T{number},")
    (folder / "tiles" / "index.csv").write_text("\n".join(table) + "\n")
    (folder / "suite.toml").write_text(SUITE)
    return folder


SUITE = """
draws = 2
bootstrap = 50
[training]
index = "tiles/index.csv"
where = { use = "train" }
[[sets]]
name = "dots"
path = "rois"
[sets.tasks]
"sizes" = []
"""
