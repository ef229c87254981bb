"""Images of the installed scikit-image package: real pixels for demos and tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import cv2
import numpy as np

from ml.errors import UnsupportedFormatError
from ml.extras import require_extra
from ml.types import ImageU8


def packaged_image(name: str) -> ImageU8:
    """Read an image of scikit-image's wheel by name: (H, W, 3) uint8 RGB.

    Raises:
        UnsupportedFormatError: this scikit-image does not ship it.
        MissingDependencyError: there is no scikit-image.
    """
    require_extra("skimage", extra="demo")
    spec = importlib.util.find_spec("skimage")  # importing it would cost a second
    folder = Path(spec.origin).parent / "data" if spec and spec.origin else Path("skimage/data")
    bgr = cv2.imread(str(folder / name), cv2.IMREAD_COLOR)
    if bgr is None:
        raise UnsupportedFormatError(
            f"scikit-image ships no readable {name}; expected 0.25 or later"
        )
    return np.ascontiguousarray(bgr[..., ::-1]).astype(np.uint8, copy=False)
