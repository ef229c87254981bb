"""A region is read with its surroundings."""

from __future__ import annotations

import numpy as np
from PIL import Image
from shapely.geometry import box

from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.regions import region_image


def test_a_region_is_read_with_its_margin_and_its_polygon_moved(tmp_path):
    image = np.full((900, 1000, 3), 230, np.uint8)
    image[400:500, 500:700] = (120, 60, 140)
    Image.fromarray(image).save(tmp_path / "x.png")
    region = region_image(RoiRecord(tmp_path / "x.png", "P", "x", 0.5, box(500, 400, 700, 500)))
    left, top, right, bottom = (round(v) for v in region.polygon.bounds)
    assert region.pixels.shape[:2] == (100 + 512, 200 + 512) and region.mpp == 0.5
    assert (region.pixels[top:bottom, left:right] == (120, 60, 140)).all()
