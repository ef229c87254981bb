"""Stage 3, loops: revisited places, found by appearance and position of loop keyframes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ml.geometry import transform_points
from ml.keypoints import load_descriptor
from ml.mosaic.alignment.place_recognition import similar_pairs, vlad_vectors
from ml.mosaic.config import MosaicConfig
from ml.mosaic.registration.direct_links import refine_link, revisit_link
from ml.mosaic.registration.features import link_features
from ml.mosaic.registration.links import Link
from ml.mosaic.registration.loop_keyframes import LoopKeyframeStore
from ml.mosaic.registration.motion_model import composed_model
from ml.types import ArrayBool, ArrayF64, Progress

MIN_LOOP_DISTANCE = 3
"""Loop keyframes whose indices differ by less are neighbours, not loops."""

SURE_INLIERS = 3
"""Times the inliers of a plain link that a loop needs where grey values do not confirm it."""

LOOP_PHASE = "loops"


def loops_by_appearance(
    store: LoopKeyframeStore, *, model: str, config: MosaicConfig, progress: Progress
) -> tuple[Link, ...]:
    """Links between loop keyframes that look alike, verified by their key points' geometry."""
    progress(0, 2, LOOP_PHASE)
    if len(store.positions) <= MIN_LOOP_DISTANCE:
        return ()
    vectors = vlad_vectors(store)
    rows = similar_pairs(vectors, count=config.loop_candidates, min_distance=MIN_LOOP_DISTANCE)
    pairs = [(store.positions[a], store.positions[b]) for a, b in rows]
    return verify_loops(store, pairs, model=model, config=config, progress=progress)


def loops_by_overlap(
    store: LoopKeyframeStore,
    placed: dict[int, ArrayF64],
    checked_pairs: set[tuple[int, int]],
    *,
    mask: ArrayBool,
    model: str,
    config: MosaicConfig,
    progress: Progress,
) -> tuple[Link, ...]:
    """Links between loop keyframes of one plane whose views overlap and are not linked.

    Grey values come first, from the position in the plane; key points where that is too far off.
    """
    overlapping = _overlapping_pairs(store.positions, placed, mask, config.revisit_links)
    loops, unconfirmed = [], []
    new = [pair for pair in overlapping if pair not in checked_pairs]
    for number, (later, earlier) in enumerate(new):
        progress(number, len(overlapping), LOOP_PHASE)
        start = np.asarray(np.linalg.solve(placed[earlier], placed[later]), np.float64)
        link = revisit_link(store.load(later).view, store.load(earlier).view, start, model=model)
        if link is None:
            unconfirmed.append((later, earlier))
        else:
            loops.append(link)
    return (
        *loops,
        *verify_loops(store, unconfirmed, model=model, config=config, progress=progress),
    )


def verify_loops(
    store: LoopKeyframeStore,
    pairs: list[tuple[int, int]],
    *,
    model: str,
    config: MosaicConfig,
    progress: Progress,
) -> tuple[Link, ...]:
    """Link the pairs whose key points agree on a plausible motion, refined by grey values."""
    descriptor, composed = load_descriptor(config.descriptor), composed_model(model)
    loops = []
    for number, (later, earlier) in enumerate(sorted(pairs)):
        progress(number, len(pairs), LOOP_PHASE)
        a, b = store.load(later), store.load(earlier)
        link = link_features(a, b, descriptor=descriptor, model=composed, config=config)
        if link is None:
            continue
        exact = refine_link(link, a.view, b.view, model=model)
        # one false loop bends the whole map, so key points need far better agreement
        if exact.kind == "direct" or link.inliers >= SURE_INLIERS * config.min_inliers:
            loops.append(replace(exact, kind="loop"))
    return tuple(loops)


def _overlapping_pairs(
    positions: list[int], placed: dict[int, ArrayF64], mask: ArrayBool, count: int
) -> list[tuple[int, int]]:
    """Pairs (later, earlier) of loop keyframes whose views overlap largely.

    For each up to ``count`` of those at least ``MIN_LOOP_DISTANCE`` before it whose middles are
    within half the view's shorter side, evenly from the earliest to the latest: the earliest
    have the most drift.
    """
    placed_positions = [position for position in positions if position in placed]
    if len(placed_positions) <= MIN_LOOP_DISTANCE or count < 1:
        return []
    rows, columns = np.nonzero(mask)
    middle = np.array([[columns.mean(), rows.mean()]])
    reach = 0.5 * min(np.ptp(rows), np.ptp(columns))
    centre = np.concatenate(
        [transform_points(placed[position], middle) for position in placed_positions]
    )
    pairs = []
    for i in range(MIN_LOOP_DISTANCE, len(placed_positions)):
        distance = np.hypot(*(centre[: i - MIN_LOOP_DISTANCE + 1] - centre[i]).T)
        near = np.flatnonzero(distance < reach)
        if len(near):
            chosen = near[np.unique(np.linspace(0, len(near) - 1, count).astype(int))]
            pairs += [(placed_positions[i], placed_positions[int(j)]) for j in chosen]
    return pairs
