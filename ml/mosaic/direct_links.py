"""Links by grey values: made of an alignment, refined from key points, or found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ml.geometry import normalised, transform_points
from ml.mosaic.direct import DirectAlignment
from ml.mosaic.direct_pairs import align_pairs
from ml.mosaic.features import is_plausible
from ml.mosaic.links import Link
from ml.mosaic.motion_model import composed_model, motion_generators, nearest_in_model
from ml.mosaic.views import FrameView, log_gain
from ml.types import ArrayF64

SURE_NCC, LIKELY_NCC = 0.5, 0.36
"""Correlation that a link by grey values needs: alone, or where other links already say where.
Unrelated views reach 0.3."""

AGREE_PX = 6.0
"""Grey values that move key points further than this, twice an inlier's threshold, disagree."""

FULL_INLIERS = 300
"""Inliers that a perfect link by grey values stands for."""


Views = tuple[FrameView, FrameView]
Aligned = tuple[FrameView, FrameView, DirectAlignment]


def believed(found: DirectAlignment | None, least: float) -> DirectAlignment | None:
    """An alignment that correlates at least this well and is a motion a scope can make, or None."""
    if found is None or found.ncc < least or len(found.xy_a) < 4:
        return None
    return found if is_plausible(found.matrix, found.xy_a) else None


def direct_links(aligned: Sequence[Aligned], *, model: str, kind: str = "direct") -> list[Link]:
    """The links that alignments stand for; perspective is measured here, from the affine one."""
    bent: Sequence[DirectAlignment | None] = [None] * len(aligned)
    if composed_model(model) != model and aligned:
        bent = align_pairs(
            [(a.direct, b.direct, found.matrix) for a, b, found in aligned],
            generators=motion_generators(model),
            work_shape=aligned[0][0].grey.shape,
            only_finest=True,
        )
    return [_link(one, better, kind) for one, better in zip(aligned, bent, strict=True)]


def _link(aligned: Aligned, bent: DirectAlignment | None, kind: str) -> Link:
    a, b, found = aligned
    best = found
    if bent is not None and bent.ncc > found.ncc - 0.02 and len(bent.xy_a) >= 4:
        best = bent
    return Link(
        a.position,
        b.position,
        best.xy_a,
        best.xy_b,
        found.matrix,
        round(FULL_INLIERS * found.ncc * found.overlap) + 1,
        log_gain(a, b, best.xy_a, best.xy_b),
        best.root_info,
        kind,
    )


def refined(links: Sequence[Link], views: Sequence[Views], *, model: str) -> list[Link]:
    """Links by key points made exact by grey values; as they were where these do not agree."""
    found = _aligned(views, [link.matrix for link in links], composed_model(model))
    exact = list(links)
    agreed = [
        i
        for i, one in enumerate(found)
        if (sure := believed(one, LIKELY_NCC)) and _apart(sure.matrix, links[i]) <= AGREE_PX
    ]
    made = direct_links([(*views[i], found[i]) for i in agreed], model=model)  # type: ignore[misc]
    for i, link in zip(agreed, made, strict=True):
        exact[i] = replace(link, inliers=links[i].inliers)
    return exact


def revisited(
    views: Sequence[Views], starts: Sequence[ArrayF64], *, model: str
) -> list[Link | None]:
    """Loops by grey values alone, from where the map puts the views; None: they disagree."""
    composed = composed_model(model)
    near = [
        nearest_in_model(normalised(start), composed, a.grey.shape)
        for (a, _), start in zip(views, starts, strict=True)
    ]
    found = [believed(one, SURE_NCC) for one in _aligned(views, near, composed)]
    sure = [(*pair, one) for pair, one in zip(views, found, strict=True) if one is not None]
    made = iter(direct_links(sure, model=model, kind="loop"))
    return [None if one is None else next(made) for one in found]


def _aligned(
    views: Sequence[Views], starts: Sequence[ArrayF64], model: str
) -> list[DirectAlignment | None]:
    if not views:
        return []
    return align_pairs(
        [(a.direct, b.direct, start) for (a, b), start in zip(views, starts, strict=True)],
        generators=motion_generators(model),
        work_shape=views[0][0].grey.shape,
    )


def _apart(matrix: ArrayF64, link: Link) -> float:
    """Median px between where a motion and a link's points say the points go."""
    return float(np.median(np.hypot(*(transform_points(matrix, link.xy_a) - link.xy_b).T)))
