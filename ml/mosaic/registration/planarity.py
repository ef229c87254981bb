"""Test whether one planar motion explains all of a frame."""

from __future__ import annotations

import numpy as np

from ml.geometry import transform_points
from ml.mosaic.direct.alignment import STRAY_PX, DirectAlignment

STRAYS_PX = 0.1
"""Largest deviation of a frame's cells from one motion beyond their noise, working px. Planes give
0 to 0.07; near frames of a sinus, with strong parallax, 0.25."""

NOISE_SHARE = 0.55
"""Ratio of the deviation observed over planes to the one that a cell's information predicts."""


def is_planar_motion(alignment: DirectAlignment) -> bool:
    """Return whether one motion places all of a frame, as far as its cells are known.

    Each cell is weighted by how well it is known.
    """
    strays = np.square(alignment.xy_b - transform_points(alignment.matrix, alignment.xy_a)).sum(
        axis=1
    )
    info = alignment.root_info @ alignment.root_info.transpose(0, 2, 1)
    covariance = np.linalg.inv(info + np.eye(2) / STRAY_PX**2)
    noise = np.trace(covariance @ info @ covariance, axis1=1, axis2=2)
    share = 1 / np.trace(covariance, axis1=1, axis2=2)
    beyond = strays - NOISE_SHARE**2 * noise
    return float(share @ beyond) <= STRAYS_PX**2 * float(share.sum())
