"""The motion model, by evidence: the simplest that explains the grey values nearly as well."""

from __future__ import annotations

from itertools import islice

import numpy as np

from ml.geometry import normalised
from ml.mosaic.config import MosaicConfig
from ml.mosaic.direct_pairs import align_pairs
from ml.mosaic.direct_views import unit_frame
from ml.mosaic.sources import FrameSource
from ml.mosaic.survey import Survey, usable_frames
from ml.mosaic.views import FrameView, frame_view
from ml.types import ArrayF64

MODELS = ("translation", "similarity", "affine", "homography")
SAMPLE_FRAMES, GAP = 48, 6
"""How many of the first usable frames are compared, and how far apart those of a pair lie:
neighbours move too little to tell the models apart."""

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
    left = np.array([row for row in _unexplained(views) if row is not None])
    if len(left) < 3:
        return DEFAULT
    mean = left.mean(axis=0)
    return MODELS[int(np.argmax(mean <= (1 + TOLERANCE) * mean.min()))]


def composed_model(model: str) -> str:
    """The model in which motions are composed from frame to frame before they are optimised.

    Perspective that is composed frame by frame runs away; it is measured for each link all the
    same and comes in with the optimisation, from an affine start.
    """
    return "affine" if model == "homography" else model


def _unexplained(views: list[FrameView]) -> list[list[float] | None]:
    """Per pair, by model: 1 - ncc^2 after alignment; None if it cannot be aligned."""
    if len(views) <= GAP:
        return []
    steps = [
        None if found is None or found.ncc < MIN_NCC else found.matrix
        for found in align_pairs(
            [
                (later.direct, earlier.direct, np.eye(3))
                for later, earlier in zip(views[1:], views, strict=False)
            ],
            generators=motion_generators("affine"),
            work_shape=views[0].grey.shape,
        )
    ]
    far = [
        (views[first + GAP], views[first], start)
        for first in range(0, len(views) - GAP, 3)
        if (start := _composed(steps[first : first + GAP])) is not None
    ]
    return _by_model(far)


def _composed(steps: list[ArrayF64 | None]) -> ArrayF64 | None:
    whole = np.eye(3)
    for step in steps:
        if step is None:
            return None
        whole = whole @ step
    return whole


def _by_model(pairs: list[tuple[FrameView, FrameView, ArrayF64]]) -> list[list[float] | None]:
    rows: list[list[float]] = [[] for _ in pairs]
    for model in MODELS:
        found = align_pairs(
            [
                (later.direct, earlier.direct, nearest_in_model(start, model, later.grey.shape))
                for later, earlier, start in pairs
            ],
            generators=motion_generators(model),
            work_shape=pairs[0][0].grey.shape if pairs else (0, 0),
        )
        for row, one in zip(rows, found, strict=True):
            row.append(np.nan if one is None else 1 - max(one.ncc, 0.0) ** 2)
    return [row if np.isfinite(row).all() and min(row) < 1 - MIN_NCC**2 else None for row in rows]
