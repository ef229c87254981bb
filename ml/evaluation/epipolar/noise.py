"""How exact the ground truth itself is: what share of true points could be under 1 px at all."""

from __future__ import annotations

from functools import partial
from typing import NotRequired, TypedDict

import cv2
import numpy as np

from ml.evaluation.epipolar.scores import FrameCache
from ml.keypoints import symmetric_epipolar_px
from ml.keypoints.pixels import equalise, to_grey
from ml.types import ArrayBool, ArrayF32

WINDOW_PX = 31
"""Side of the window that is tracked: wide, for mucosa has little texture in a narrow one."""
BACK_PX = 0.5
"""A point followed to b and back must come home this near."""


class TruthNoise(TypedDict):
    """See ``truth_noise``; without points there is their number alone."""

    points: int
    moved_px: NotRequired[float]
    epipolar_px: NotRequired[float]
    under_1px: NotRequired[float]
    under_3px: NotRequired[float]
    under_1px_sum: NotRequired[float]


def truth_noise(cache: FrameCache, pairs: list[tuple[int, int]]) -> TruthNoise:
    """Epipolar error of the scene points themselves, at the places where the image shows them.

    The projections of a scene point obey the poses exactly; the image need not. Each point that
    structure from motion used in both frames is projected into both, and from its projection in b
    moved to where the image looks as it does around the one in a (Lucas-Kanade, forward and back).
    What remains between that point and the epipolar line is the error of the poses and the camera
    model, plus that of the alignment: no matcher that follows the image can be better.

    Returns:
        points: number followed; moved_px: median distance from the projection to where the image
        says; under_1px, under_3px (half of eq. 16), under_1px_sum, epipolar_px (eq. 16): as
        ``EpipolarScore``. Only ``points`` = 0 where the sequence holds no points.
    """
    moved, distance = [np.zeros(0)], [np.zeros(0)]
    for a, b in pairs:
        rows = cache.sequence.seen_in_both(a, b)
        if len(rows) < 1:
            continue
        xy_a, xy_b = cache.sequence.project(rows, a), cache.sequence.project(rows, b)
        followed, kept = _follow(cache, a, b, xy_a.astype(np.float32), xy_b.astype(np.float32))
        truth = cache.sequence.fundamental(a, b)
        distance.append(symmetric_epipolar_px(truth, xy_a[kept], followed[kept]))
        moved.append(np.hypot(*(followed[kept] - xy_b[kept]).T))
    error, far = np.concatenate(distance), np.concatenate(moved)
    if not len(error):
        return {"points": 0}
    return {
        "points": len(error),
        "moved_px": round(float(np.median(far)), 4),
        "epipolar_px": round(float(error.mean()), 4),
        "under_1px": round(float((error / 2 < 1).mean()), 4),
        "under_3px": round(float((error / 2 < 3).mean()), 4),
        "under_1px_sum": round(float((error < 1).mean()), 4),
    }


def _follow(
    cache: FrameCache, a: int, b: int, xy_a: ArrayF32, xy_b: ArrayF32
) -> tuple[ArrayF32, ArrayBool]:
    """(N, 2) where points of a lie in b, and which came home when followed back."""
    grey_a, grey_b = (equalise(to_grey(cache.frame(k))) for k in (a, b))
    follow = partial(
        cv2.calcOpticalFlowPyrLK,
        winSize=(WINDOW_PX, WINDOW_PX),
        maxLevel=1,  # it starts at the projection, a few pixels off at most
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
        criteria=(cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 40, 1e-3),
    )
    followed, found, _ = follow(grey_a, grey_b, xy_a, xy_b.copy())
    home, back, _ = follow(grey_b, grey_a, followed, xy_a.copy())
    kept = (found.ravel() > 0) & (back.ravel() > 0) & (np.hypot(*(home - xy_a).T) <= BACK_PX)
    return np.asarray(followed, np.float32), np.asarray(kept)
