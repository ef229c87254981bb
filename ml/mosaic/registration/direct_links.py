"""Links by grey values: made of an alignment, refined from key points, or of a revisited place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ml.geometry import normalised, transform_points
from ml.mosaic.direct.alignment import DirectAlignment
from ml.mosaic.frames.views import FrameView, log_gain
from ml.mosaic.registration.features import is_plausible
from ml.mosaic.registration.links import Link
from ml.mosaic.registration.motion_model import align_frames, composed_model, nearest_in_model
from ml.types import ArrayF64

SURE_NCC, LIKELY_NCC = 0.5, 0.36
"""Correlation that a direct link needs without other evidence, and where other links predict it.
Unrelated views reach 0.3."""

AGREE_PX = 6.0
"""Grey values that move key points further than this, twice an inlier's threshold, disagree."""

FULL_INLIERS = 300
"""Number of inliers that a perfect direct link counts as."""


def plausible_alignment(
    alignment: DirectAlignment | None, min_ncc: float
) -> DirectAlignment | None:
    """Return an alignment that correlates at least this well by a plausible motion, or None."""
    if alignment is None or alignment.ncc < min_ncc or len(alignment.xy_a) < 4:
        return None
    return alignment if is_plausible(alignment.matrix, alignment.xy_a) else None


def direct_link(
    a: FrameView, b: FrameView, alignment: DirectAlignment, *, model: str, kind: str = "direct"
) -> Link:
    """Make a link of an affine alignment; perspective is measured here, from the affine motion."""
    best = alignment
    if composed_model(model) != model:
        bent = align_frames(a, b, alignment.matrix, model=model, only_finest=True)
        if bent is not None and bent.ncc > alignment.ncc - 0.02 and len(bent.xy_a) >= 4:
            best = bent
    return Link(
        a.position,
        b.position,
        best.xy_a,
        best.xy_b,
        alignment.matrix,
        round(FULL_INLIERS * alignment.ncc * alignment.overlap) + 1,
        log_gain(a, b, best.xy_a, best.xy_b),
        best.root_info,
        kind,
    )


def nearby_link(a: FrameView, b: FrameView, start: ArrayF64, *, model: str) -> Link | None:
    """Link two views that ``start`` aligns roughly; None if their grey values disagree."""
    alignment = align_frames(a, b, start, model=composed_model(model), only_finest=True)
    sure = plausible_alignment(alignment, LIKELY_NCC)
    return None if sure is None else direct_link(a, b, sure, model=model)


def refine_link(link: Link, a: FrameView, b: FrameView, *, model: str) -> Link:
    """Refine a link by key points with grey values; unchanged where these do not agree."""
    alignment = align_frames(a, b, link.matrix, model=composed_model(model))
    sure = plausible_alignment(alignment, LIKELY_NCC)
    if sure is None or _distance_px(sure.matrix, link) > AGREE_PX:
        return link
    return replace(direct_link(a, b, sure, model=model), inliers=link.inliers)


def revisit_link(a: FrameView, b: FrameView, start: ArrayF64, *, model: str) -> Link | None:
    """Link two views of a loop by grey values, from a start given by the map, or None."""
    composed = composed_model(model)
    near = nearest_in_model(normalised(start), composed, a.grey.shape)
    sure = plausible_alignment(align_frames(a, b, near, model=composed), SURE_NCC)
    return None if sure is None else direct_link(a, b, sure, model=model, kind="loop")


def _distance_px(matrix: ArrayF64, link: Link) -> float:
    """Median distance in px between a link's points in b and where a motion maps them."""
    return float(np.median(np.hypot(*(transform_points(matrix, link.xy_a) - link.xy_b).T)))
