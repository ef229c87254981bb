"""How alike two regions are in colour, whatever their tissue is: what an encoder may look past."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np

from ml.types import ArrayF32, ImageU8

_BINS = (6, 16, 16)
"""Of lightness and the two directions of colour: a bin of colour is 4 units wide, some two steps
that an eye can tell apart; lightness is coarser, for tissue varies most in it."""
_RANGE = ((0, 256), (96, 160), (96, 160))  # of 8-bit Lab: H&E and DAB stay within
_STEP = 4  # every fourth pixel each way, for speed
_GLASS_OD = 0.06  # a pixel thinner in every channel is no tissue, as in ``tissue_share``


def colour_histogram(patches: Iterable[ImageU8]) -> ArrayF32:
    """(bins,) float32 that add up to one: which colours the tissue of (P, P, 3) uint8 patches has.

    Blank glass is left out; patches of nothing else give zeros.
    """
    found = np.zeros(_BINS, np.float32)
    for patch in patches:
        thin = np.ascontiguousarray(patch[::_STEP, ::_STEP])
        tissue = thin.min(axis=2) < 255 * 10**-_GLASS_OD
        if not tissue.any():
            continue
        lab = np.asarray(cv2.cvtColor(thin, cv2.COLOR_RGB2LAB))[tissue].astype(np.float32)
        low, high = np.array(_RANGE, np.float32).T
        inside = np.clip(lab, low, high - 1)
        found += np.histogramdd(inside, bins=_BINS, range=_RANGE)[0].astype(np.float32)
    total = float(found.sum())
    return (found / total if total else found).ravel()


def colour_overlap(a: ArrayF32, b: ArrayF32) -> float:
    """Share of two regions' tissue that has the same colours: 1 the same, 0 none in common.

    Args:
        a, b: as ``colour_histogram`` gives them.
    Source: histogram intersection (Swain and Ballard 1991), section 3.1.
    """
    return float(np.minimum(a, b).sum())
