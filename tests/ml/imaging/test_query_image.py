"""A picture that somebody searches with."""

import numpy as np
import pytest
from PIL import Image

from ml.errors import UnsupportedFormatError
from ml.imaging import query_image


def test_a_large_picture_is_reduced_and_reports_the_factor(tmp_path, monkeypatch):
    monkeypatch.setattr(query_image, "MAX_SIDE_PX", 50)
    Image.new("RGB", (200, 100), "#c080b0").save(tmp_path / "a.jpg")
    query_result = query_image.make_query_image(path=str(tmp_path / "a.jpg"), out_dir=str(tmp_path))
    assert query_result == {"width_px": 50, "height_px": 25, "reduced_by": 4.0}
    assert np.asarray(Image.open(tmp_path / query_image.PICTURE_NAME)).shape == (25, 50, 3)


def test_a_slide_is_no_picture(tmp_path):
    from ml.imaging.slides.pyramids import write_pyramid

    write_pyramid(np.full((600, 600, 3), 200, np.uint8), tmp_path / "a.tif", mpp=0.5)
    with pytest.raises(UnsupportedFormatError, match="slide"):
        query_image.make_query_image(path=str(tmp_path / "a.tif"), out_dir=str(tmp_path))
