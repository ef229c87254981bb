"""Which frames may ride along with a keyframe: those that its motion explains."""

from __future__ import annotations

import numpy as np

from ml.geometry import transform_points
from ml.mosaic.direct import STRAY_PX, DirectAlignment

STRAYS_PX = 0.1
"""Working px by which the cells of a frame that rides along may stray from its motion, beyond their
noise. Over planes it is 0 to 0.07; of near frames of a sinus, where parallax is strong, 0.25."""

NOISE_SHARE = 0.55
"""Of the deviation that a cell's information stands for, which is cautious: what remains over
planes."""


def may_ride(found: DirectAlignment) -> bool:
    """Whether one motion places all of a frame, as far as its cells are known.

    Each cell is weighted by how well it is known.
    """
    strays = np.square(found.xy_b - transform_points(found.matrix, found.xy_a)).sum(axis=1)
    info = found.root_info @ found.root_info.transpose(0, 2, 1)
    covariance = np.linalg.inv(info + np.eye(2) / STRAY_PX**2)
    noise = np.trace(covariance @ info @ covariance, axis1=1, axis2=2)
    share = 1 / np.trace(covariance, axis1=1, axis2=2)
    beyond = strays - NOISE_SHARE**2 * noise
    return float(share @ beyond) <= STRAYS_PX**2 * float(share.sum())
