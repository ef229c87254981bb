"""ROIs of the demo are on tissue, whatever the colour of the glass."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from ml.imaging.slides.slide import open_slide
from portal.operations.demo.rois import THUMBNAIL_PX, _circles, _disc

STAINED = 200  # red of the stained section, below that of its glass


@pytest.mark.slow
@pytest.mark.parametrize("name", ["D1", "E1"])
def test_circles_are_on_the_tissue_of_a_section_with_pink_glass(
    tessera_data: Path, name: str
) -> None:
    with open_slide(tessera_data / "histology" / "sections" / f"5714_HE_BT_{name}.jpg") as slide:
        thumbnail = slide.thumbnail(THUMBNAIL_PX)
    is_stained = cv2.GaussianBlur(thumbnail[..., 0], (0, 0), 3) < STAINED
    circles = _circles(thumbnail, np.random.default_rng(0))
    assert circles
    assert all(is_stained[_disc(thumbnail, circle)].mean() > 0.9 for circle in circles)
