"""Images of scikit-image's wheel."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import UnsupportedFormatError
from ml.imaging.samples.packaged import packaged_image


def test_a_packaged_image_is_rgb() -> None:
    retina = packaged_image("retina.jpg")
    assert retina.dtype == np.uint8 and retina.shape == (1411, 1411, 3)
    assert retina[..., 0].mean() > retina[..., 2].mean()  # a fundus is red


def test_a_missing_packaged_image_raises_an_error_with_its_name() -> None:
    with pytest.raises(UnsupportedFormatError, match=r"nothing\.png"):
        packaged_image("nothing.png")
