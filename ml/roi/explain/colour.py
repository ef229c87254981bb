"""Colour similarity of two regions, a possible confounder of an encoder."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np

from ml.imaging.tissue.glass import AVERAGED_PX
from ml.roi.measures.features import patch_tissue
from ml.types import ArrayF32, ImageU8

_BINS = (6, 16, 16)
"""Bins of L, a and b. A bin of a or b is 4 units wide, about two just noticeable differences; L is
coarser, as tissue varies most in it."""
_RANGE = ((0, 256), (96, 160), (96, 160))  # of 8-bit Lab, which contains H&E and DAB


def colour_histogram(patches: Iterable[ImageU8]) -> ArrayF32:
    """Colour histogram (bins,) float32, normalised, of the tissue in patches (P, P, 3) uint8.

    Glass is excluded; zeros if there is no tissue.
    """
    counts = np.zeros(_BINS, np.float32)
    for patch in patches:
        tissue = patch_tissue(patch)
        if not tissue.any():
            continue
        thin = np.ascontiguousarray(patch[::AVERAGED_PX, ::AVERAGED_PX])
        lab = np.asarray(cv2.cvtColor(thin, cv2.COLOR_RGB2LAB))[tissue].astype(np.float32)
        low, high = np.array(_RANGE, np.float32).T
        inside = np.clip(lab, low, high - 1)
        counts += np.histogramdd(inside, bins=_BINS, range=_RANGE)[0].astype(np.float32)
    total = float(counts.sum())
    return (counts / total if total else counts).ravel()


def colour_overlap(a: ArrayF32, b: ArrayF32) -> float:
    """Overlap of two colour histograms: 1 if equal, 0 if disjoint.

    Args:
        a, b: Results of ``colour_histogram``.
    Source: histogram intersection (Swain and Ballard 1991), section 3.1.
    """
    return float(np.minimum(a, b).sum())
