"""The motion model, by evidence: the simplest that explains the grey values nearly as well."""

from __future__ import annotations

from itertools import islice

import numpy as np

from ml.geometry import normalised
from ml.mosaic.config import MosaicConfig
from ml.mosaic.direct.alignment import DirectAlignment, align_views
from ml.mosaic.direct.pyramid import unit_frame
from ml.mosaic.frames.sources import FrameSource
from ml.mosaic.frames.survey import Survey, usable_frames
from ml.mosaic.frames.views import FrameView, frame_view
from ml.types import ArrayF64

MODELS = ("translation", "similarity", "affine", "homography")
SAMPLE_FRAMES, GAP = 48, 6
"""Number of usable frames that are compared, and the distance of a pair in frames: neighbours move
too little to distinguish the models."""

TOLERANCE = 0.015
"""The simplest model is chosen that leaves at most this share more unexplained than the best."""

SIMILAR = 4
"""Degrees of freedom of a similarity: position, scale, direction."""

DEFAULT = "affine"

MIN_NCC = 0.4
"""Correlation under which a pair is not aligned: unrelated views reach 0.3."""


def motion_generators(model: str) -> ArrayF64:
    """(K, 3, 3): the directions in which a transform may change; K is 2, 4, 6 or 8.

    The ``SIMILAR`` that a similarity has come first, then shear, then perspective.
    """
    e = np.eye(9).reshape(9, 3, 3)
    if model == "translation":
        return np.stack([e[2], e[5]])
    similar = [e[0] + e[4], e[3] - e[1], e[2], e[5]]
    shear, perspective = [e[0] - e[4], e[1] + e[3]], [e[6], e[7]]
    count = {"similarity": 4, "affine": 6, "homography": 8}[model]
    return np.stack([*similar, *shear, *perspective][:count])


def nearest_in_model(matrix: ArrayF64, model: str, shape: tuple[int, ...]) -> ArrayF64:
    """The (3, 3) motion of a model that is nearest to another about the middle of the image."""
    unit = unit_frame((shape[0], shape[1]))
    state = np.linalg.inv(unit) @ matrix @ unit
    state = state / state[2, 2]
    if model != "homography":
        state[2, :2] = 0
    if model == "similarity":
        c, s = (state[0, 0] + state[1, 1]) / 2, (state[1, 0] - state[0, 1]) / 2
        state[:2, :2] = [[c, -s], [s, c]]
    elif model == "translation":
        state[:2, :2] = np.eye(2)
    nearest: ArrayF64 = unit @ state @ np.linalg.inv(unit)
    return normalised(nearest)


def align_frames(
    a: FrameView, b: FrameView, start: ArrayF64, *, model: str, only_finest: bool = False
) -> DirectAlignment | None:
    """Align two views by grey values within a motion model; see ``align_views``."""
    return align_views(
        a.direct,
        b.direct,
        start,
        generators=motion_generators(model),
        work_shape=(a.grey.shape[0], a.grey.shape[1]),
        only_finest=only_finest,
    )


def choose_model(source: FrameSource, survey: Survey, config: MosaicConfig) -> str:
    """Compare the models on pairs ``GAP`` usable frames apart, among the first ones.

    Returns:
        The simplest model whose mean unexplained variance, 1 - ncc^2, is within ``TOLERANCE`` of
        the best one's; ``DEFAULT`` where no pair can be aligned.
    """
    views = [
        frame_view(position, rgb, survey)
        for position, rgb in islice(usable_frames(source, survey), SAMPLE_FRAMES)
    ]
    unexplained = np.array([row for row in _unexplained_shares(views) if row is not None])
    if len(unexplained) < 3:
        return DEFAULT
    mean = unexplained.mean(axis=0)
    return MODELS[int(np.argmax(mean <= (1 + TOLERANCE) * mean.min()))]


def composed_model(model: str) -> str:
    """Motion model for composing motions from frame to frame, before the optimisation.

    Errors of perspective terms grow quickly when homographies are composed, so the composition is
    affine. Links still measure homographies, and the optimisation adds the perspective.
    """
    return "affine" if model == "homography" else model


def _unexplained_shares(views: list[FrameView]) -> list[list[float] | None]:
    """Per pair, by model: 1 - ncc^2 after alignment; None if it cannot be aligned."""
    if len(views) <= GAP:
        return []
    steps = [_step(later, earlier) for later, earlier in zip(views[1:], views, strict=False)]
    pairs = [
        (views[first + GAP], views[first], start)
        for first in range(0, len(views) - GAP, 3)
        if (start := _compose(steps[first : first + GAP])) is not None
    ]
    return [_unexplained_by_model(later, earlier, start) for later, earlier, start in pairs]


def _step(later: FrameView, earlier: FrameView) -> ArrayF64 | None:
    alignment = align_frames(later, earlier, np.eye(3), model="affine")
    return None if alignment is None or alignment.ncc < MIN_NCC else alignment.matrix


def _compose(steps: list[ArrayF64 | None]) -> ArrayF64 | None:
    product = np.eye(3)
    for step in steps:
        if step is None:
            return None
        product = product @ step
    return product


def _unexplained_by_model(
    later: FrameView, earlier: FrameView, start: ArrayF64
) -> list[float] | None:
    row = []
    for model in MODELS:
        nearest = nearest_in_model(start, model, later.grey.shape)
        alignment = align_frames(later, earlier, nearest, model=model)
        if alignment is None:
            return None
        row.append(1 - max(alignment.ncc, 0.0) ** 2)
    return row if min(row) < 1 - MIN_NCC**2 else None
