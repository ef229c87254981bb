"""A picture that somebody searches with."""

import numpy as np
import pytest
from PIL import Image

from ml.errors import UnsupportedFormatError
from ml.imaging import pictures


def test_a_large_picture_is_reduced_and_says_by_how_much(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "LONGEST_PX", 50)
    Image.new("RGB", (200, 100), "#c080b0").save(tmp_path / "a.jpg")
    found = pictures.make_picture(path=str(tmp_path / "a.jpg"), out_dir=str(tmp_path))
    assert found == {"width_px": 50, "height_px": 25, "reduced_by": 4.0}
    assert np.asarray(Image.open(tmp_path / pictures.PICTURE_NAME)).shape == (25, 50, 3)


def test_a_slide_is_no_picture(tmp_path):
    from ml.imaging.slides.pyramids import write_pyramid

    write_pyramid(np.full((600, 600, 3), 200, np.uint8), tmp_path / "a.tif", mpp=0.5)
    with pytest.raises(UnsupportedFormatError, match="slide; expected a picture"):
        pictures.make_picture(path=str(tmp_path / "a.tif"), out_dir=str(tmp_path))
