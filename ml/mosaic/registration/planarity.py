"""Test whether one planar motion explains all of a frame, or of all linked frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ml.geometry import transform_points
from ml.mosaic.direct.alignment import STRAY_PX, DirectAlignment
from ml.mosaic.registration.links import Link
from ml.types import ArrayF64

STRAYS_PX = 0.1
"""Largest deviation of cells from one motion beyond their noise, working px. Planes give 0 to 0.07;
near frames of a sinus, with strong parallax, 0.25."""

NOISE_SHARE = 0.55
"""Ratio of the deviation observed over planes to the one that a cell's information predicts."""

MIN_PLANAR_SHARE = 0.9
"""Smallest share of links within ``STRAYS_PX`` over a plane: of those of distant frames, where
parallax is large, there are few. The link at this share gives at most 0.06 px over planes, and at
least 0.18 over stills with depth, hills and fetoscopy."""


def is_planar_motion(alignment: DirectAlignment) -> bool:
    """Return whether one motion places all of a frame, as far as its cells are known."""
    return _fits_one_motion(alignment, alignment.matrix)


def is_planar_scene(links: Iterable[Link], placed: Mapping[int, ArrayF64]) -> bool:
    """Return whether the positions of keyframes in one plane explain nearly all of their links.

    Args:
        placed: position of a keyframe -> (3, 3), working px to the plane.
    """
    fits = [
        _fits_one_motion(link, np.asarray(np.linalg.solve(placed[link.b], placed[link.a])))
        for link in links
        if link.a in placed and link.b in placed
    ]
    return sum(fits) >= MIN_PLANAR_SHARE * len(fits)


def _fits_one_motion(cells: DirectAlignment | Link, matrix: ArrayF64) -> bool:
    """Return whether cells deviate from a motion by little more than their noise.

    Each cell is weighted by how well it is known.
    """
    strays = np.square(cells.xy_b - transform_points(matrix, cells.xy_a)).sum(axis=1)
    info = cells.root_info @ cells.root_info.transpose(0, 2, 1)
    covariance = np.linalg.inv(info + np.eye(2) / STRAY_PX**2)
    noise = np.trace(covariance @ info @ covariance, axis1=1, axis2=2)
    share = 1 / np.trace(covariance, axis1=1, axis2=2)
    beyond = strays - NOISE_SHARE**2 * noise
    return float(share @ beyond) <= STRAYS_PX**2 * float(share.sum())
