"""Radial distortion, estimated from the frames and used only where it measures better.

One coefficient, ``k1`` of OpenCV's model with the focal length taken as half the frame's longer
side: whatever the real focal length, a term of ``r^2`` fits as well in these units. It is searched
for on one half of the pairs of frames and validated on the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ml.geometry import transform_points
from ml.mosaic.config import MosaicConfig
from ml.mosaic.direct.alignment import align_views
from ml.mosaic.direct.pyramid import DirectView
from ml.mosaic.frames.sources import FrameSource, SourceFrame
from ml.mosaic.frames.survey import Survey, measure_frames, survey_of, usable_frames
from ml.mosaic.frames.views import FrameView, frame_view
from ml.mosaic.registration.motion_model import align_frames, motion_generators
from ml.types import ArrayBool, ArrayF32, ArrayF64, Progress

HEAD_FRAMES, MAX_PAIRS = 150, 16
"""Six seconds at 25 frames a second; every other pair is searched, the others validate."""

MOVED_SHARE = 0.12
"""Two frames show the distortion once they are this share of the view apart."""

STEP, MAX_STRENGTH = 0.1, 0.5
"""First step of the search for k1, and where it ends: half the radius at the rim."""

MIN_PAIRS, MIN_GAIN, MIN_SHARE = 5, 0.03, 0.8
"""Held-out pairs: smallest number, fall of 1 - ncc^2, and share of pairs in which it falls."""

MIN_RIM_PX = 0.7
"""A correction that moves the rim by less than this, in working px, is not worth a resampling."""

MIN_NCC = 0.4
"""Correlation of neighbouring frames below which the motion between them is not believed."""


@dataclass(frozen=True, slots=True)
class _ViewPair:
    """Two views that are well apart; start (3, 3), working px of a to b."""

    a: FrameView
    b: FrameView
    start: ArrayF64


class HeadSource:
    """The first frames of a source."""

    def __init__(self, source: FrameSource, count: int) -> None:
        self._source, self.count = source, min(source.count, count)

    def frames(self, first: int = 0) -> Iterator[SourceFrame]:
        """Yield the frames from the ``first``-th on."""
        return islice(self._source.frames(first), max(self.count - first, 0))


def estimate_distortion(
    source: FrameSource,
    *,
    config: MosaicConfig,
    mask: npt.NDArray[Any] | None,
    progress: Progress,
) -> tuple[float, ...]:
    """Estimate ``MosaicConfig.distortion`` of the camera; () where no correction is validated.

    Looks at the first ``HEAD_FRAMES`` frames. A homography is fitted to the grey values of each
    pair under each candidate; what it leaves unexplained is 1 - ncc^2.

    Raises:
        MosaicError, ShapeError: as the survey does.
    """
    head = HeadSource(source, HEAD_FRAMES)
    measures = measure_frames(head, config=config, progress=progress)
    survey = survey_of(measures, config=config, mask=mask)
    pairs = _pairs(head, survey)
    k1 = proven_k1(pairs[::2], pairs[1::2])
    if k1 is None:
        return ()
    width, height = survey.size_px
    focal = 0.5 * max(width, height)
    return (focal, focal, (width - 1) / 2, (height - 1) / 2, k1, 0.0, 0.0, 0.0)


def proven_k1(pairs: Sequence[_ViewPair], held_out: Sequence[_ViewPair]) -> float | None:
    """The coefficient that explains ``pairs`` best, if it improves ``held_out`` too; else None."""
    if len(held_out) < MIN_PAIRS:
        return None
    k1 = _search(pairs)
    if abs(k1) * _rim_radius(pairs[0].a) ** 3 * 0.5 * max(pairs[0].a.grey.shape) < MIN_RIM_PX:
        return None
    plain, corrected = _unexplained_shares(held_out, 0.0), _unexplained_shares(held_out, k1)
    better = float((corrected < plain).mean())
    gain = 1 - float(corrected.mean()) / max(float(plain.mean()), 1e-9)
    return round(k1, 4) if gain >= MIN_GAIN and better >= MIN_SHARE else None


def _search(pairs: Sequence[_ViewPair]) -> float:
    """Find the k1 with the smallest mean unexplained variance by line search and parabolas."""
    cost: dict[float, float] = {}

    def cost_at(k1: float) -> float:
        if k1 not in cost:
            cost[k1] = float(_unexplained_shares(pairs, k1).mean())
        return cost[k1]

    best, step = 0.0, STEP
    while step > STEP / 5:
        lower, upper = best - step, best + step
        if min(cost_at(lower), cost_at(upper)) < cost_at(best) and abs(best) < MAX_STRENGTH:
            best = lower if cost_at(lower) < cost_at(upper) else upper
            continue
        bend = cost_at(lower) - 2 * cost_at(best) + cost_at(upper)
        if bend > 0:
            best += 0.5 * step * (cost_at(lower) - cost_at(upper)) / bend
        step /= 4
    return best


def _unexplained_shares(pairs: Sequence[_ViewPair], k1: float) -> ArrayF64:
    """(P,): 1 - ncc^2 of each pair after alignment; 1 if it cannot be aligned."""
    generators = motion_generators("homography")
    alignments = [
        align_views(
            undistorted_view(pair.a.direct, k1),
            undistorted_view(pair.b.direct, k1),
            pair.start,
            generators=generators,
            work_shape=(pair.a.grey.shape[0], pair.a.grey.shape[1]),
        )
        for pair in pairs
    ]
    return np.array(
        [1.0 if alignment is None else 1 - max(alignment.ncc, 0.0) ** 2 for alignment in alignments]
    )


def undistorted_view(view: DirectView, k1: float) -> DirectView:
    """A prepared view as a camera without that distortion would have shown it."""
    if k1 == 0.0:
        return view
    images: list[ArrayF32] = []
    masks: list[ArrayBool] = []
    for image, mask in zip(view.images, view.masks, strict=True):
        x, y = _distorting_map((image.shape[0], image.shape[1]), k1)
        images.append(np.asarray(cv2.remap(image, x, y, cv2.INTER_LINEAR), np.float32))
        valid = cv2.remap(mask.astype(np.uint8), x, y, cv2.INTER_NEAREST)
        masks.append(np.asarray(valid > 0))
    return DirectView(tuple(images), tuple(masks))


def _distorting_map(shape: tuple[int, int], k1: float) -> tuple[ArrayF32, ArrayF32]:
    """Position in the distorted image of each px of the corrected one: x (1 + k1 r^2)."""
    focal, cx, cy = 0.5 * max(shape), (shape[1] - 1) / 2, (shape[0] - 1) / 2
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    x, y = (x - cx) / focal, (y - cy) / focal
    factor = 1 + k1 * (x * x + y * y)
    return (
        (x * factor * focal + cx).astype(np.float32),
        (y * factor * focal + cy).astype(np.float32),
    )


def _rim_radius(view: FrameView) -> float:
    """Distance of the view's rim to the middle of the image, in units of half the longer side."""
    rows, columns = np.nonzero(view.mask)
    middle = np.array(view.grey.shape[::-1]) / 2
    radius_px = np.hypot(columns - middle[0], rows - middle[1]).max() if len(rows) else 0.0
    return float(radius_px / (0.5 * max(view.grey.shape)))


def _pairs(source: FrameSource, survey: Survey) -> list[_ViewPair]:
    """Pairs of views that are well apart, by following the motion from one to the other."""
    pairs: list[_ViewPair] = []
    anchor: FrameView | None = None
    motion = np.eye(3)
    for view, step in _steps(source, survey):
        if anchor is None or step is None:
            anchor, motion = view, np.eye(3)
        else:
            motion = motion @ step
            if _motion_px(motion, view) > MOVED_SHARE * max(view.grey.shape):
                pairs.append(_ViewPair(view, anchor, motion / motion[2, 2]))
                anchor, motion = view, np.eye(3)
        if len(pairs) == MAX_PAIRS:
            break
    return pairs


def _steps(source: FrameSource, survey: Survey) -> Iterator[tuple[FrameView, ArrayF64 | None]]:
    """Yield each view and its motion from the previous one, None if it is unknown."""
    last: FrameView | None = None
    for position, rgb in usable_frames(source, survey):
        view = frame_view(position, rgb, survey)
        alignment = None if last is None else align_frames(view, last, np.eye(3), model="affine")
        yield view, None if alignment is None or alignment.ncc < MIN_NCC else alignment.matrix
        last = view


def _motion_px(motion: ArrayF64, view: FrameView) -> float:
    middle = np.array([[view.grey.shape[1] / 2, view.grey.shape[0] / 2]])
    return float(np.hypot(*(transform_points(motion, middle) - middle)[0]))
