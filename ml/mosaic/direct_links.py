"""Links by grey values: made of an alignment, refined from key points, or found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ml.geometry import normalised, transform_points
from ml.mosaic.direct import DirectAlignment, align_views
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


def direct_link(
    a: FrameView, b: FrameView, found: DirectAlignment, *, model: str, kind: str = "direct"
) -> Link:
    """The link that an alignment stands for; perspective is measured here, from the affine one."""
    best = found
    if composed_model(model) != model:
        bent = align_views(
            a.direct,
            b.direct,
            found.matrix,
            generators=motion_generators(model),
            work_shape=a.grey.shape,
            only_finest=True,
        )
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


def refined(link: Link, a: FrameView, b: FrameView, *, model: str) -> Link:
    """A link by key points made exact by grey values; as it was where these do not agree."""
    found = align_views(
        a.direct,
        b.direct,
        link.matrix,
        generators=motion_generators(composed_model(model)),
        work_shape=a.grey.shape,
    )
    if found is None or found.ncc < LIKELY_NCC or len(found.xy_a) < 4:
        return link
    if not is_plausible(found.matrix, found.xy_a) or _apart(found.matrix, link) > AGREE_PX:
        return link
    return replace(direct_link(a, b, found, model=model), inliers=link.inliers)


def revisited(a: FrameView, b: FrameView, start: ArrayF64, *, model: str) -> Link | None:
    """A loop by grey values alone, from where the map puts the views; None: they disagree."""
    composed = composed_model(model)
    found = align_views(
        a.direct,
        b.direct,
        nearest_in_model(normalised(start), composed, a.grey.shape),
        generators=motion_generators(composed),
        work_shape=a.grey.shape,
    )
    if found is None or found.ncc < SURE_NCC or len(found.xy_a) < 4:
        return None
    if not is_plausible(found.matrix, found.xy_a):
        return None
    return direct_link(a, b, found, model=model, kind="loop")


def _apart(matrix: ArrayF64, link: Link) -> float:
    """Median px between where a motion and a link's points say the points go."""
    return float(np.median(np.hypot(*(transform_points(matrix, link.xy_a) - link.xy_b).T)))
