"""The part of a frame that the scope shows: of a round view in a wide frame it is under half."""

from __future__ import annotations

import numpy as np

from ml.geometry import box_corners
from ml.types import ArrayBool, ArrayF64


def view_corners(mask: ArrayBool) -> ArrayF64:
    """(4, 2) float64 px: corners of the upright box around the view, of a mask (h, w)."""
    rows, columns = np.nonzero(mask)
    return box_corners(columns.min(), rows.min(), columns.max(), rows.max())


def view_side_px(mask: ArrayBool) -> float:
    """The longer side of that box."""
    corners = view_corners(mask)
    return float((corners[2] - corners[0]).max()) + 1
