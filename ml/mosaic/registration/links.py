"""Links between two frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ml.types import ArrayF32, ArrayF64

POINT_SIGMA_PX = 1.0
"""Standard deviation of a matched key point, working px."""


@dataclass(frozen=True, slots=True)
class Link:
    """Corresponding points of two frames, at working size.

    Attributes:
        a, b: positions of the frames in the source.
        xy_a, xy_b: (P, 2) float32, spatially even.
        matrix: (3, 3) float64 mapping a to b.
        inliers: how many key points agreed before thinning; for a direct link an equivalent.
        log_gain: (3,) float32, median log brightness of b over a, by channel.
        root_info: (P, 2, 2) float64, square roots R of each point's information, in the plane of
            b: ``R R^T`` is the inverse covariance, 1 / px2.
        kind: "points", "direct" (grey values) or "loop" (either, far apart in time).
    """

    a: int
    b: int
    xy_a: ArrayF32
    xy_b: ArrayF32
    matrix: ArrayF64
    inliers: int
    log_gain: ArrayF32
    root_info: ArrayF64
    kind: str = "points"


def point_info(count: int) -> ArrayF64:
    """(count, 2, 2): key points are known equally well in all directions."""
    return np.tile(np.eye(2) / POINT_SIGMA_PX, (count, 1, 1))
