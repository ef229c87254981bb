"""Stage 4, align: find the connected components, compose, optimise and check each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ml.geometry import depth_of, normalised, transform_points
from ml.mosaic.alignment.loops import loops_by_overlap
from ml.mosaic.alignment.optimisation import Adjustment, adjust_transforms, link_residuals
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.field_of_view import view_corners
from ml.mosaic.registration.features import is_plausible
from ml.mosaic.registration.links import Link
from ml.mosaic.registration.loop_keyframes import LoopKeyframeStore
from ml.mosaic.registration.result import Registration
from ml.types import ArrayBool, ArrayF64, Progress

HOP_COST = 30.0
"""A link with this many inliers costs twice the bare hop: short paths of good links come first."""

MAX_AREA_RATIO = 16.0
"""A frame drawn over 16 times or under a 16th of its own area (4 times a side) is misplaced."""

MAX_ERROR_PX = 6.0
"""Median residual beyond which a link contradicts the optimum: twice an inlier's threshold."""

LOOP_ROUNDS = 2
"""A second round finds loops between keyframes that the first round made overlap."""


@dataclass(frozen=True, slots=True)
class AlignedComponent:
    """Keyframes of one connected component, in one plane.

    Attributes:
        transforms: position of a frame -> (3, 3) float64, working px to the plane's working px.
        anchor: position of the frame in the middle of whose view the plane has that frame's own
            position, scale and direction; its tilt is the one that all frames see the least.
        links: all links between its keyframes.
        error_px: position -> median residual of its links, working px.
        covariance: position -> (3, 3) of (x, y, rotation) of the view's middle, working px and
            radians;
        uncertainty_px: position -> of its corners, working px.
    """

    transforms: dict[int, ArrayF64]
    anchor: int
    links: tuple[Link, ...]
    error_px: dict[int, float]
    covariance: dict[int, ArrayF64]
    uncertainty_px: dict[int, float]


def align_components(
    registration: Registration,
    loops: tuple[Link, ...],
    store: LoopKeyframeStore,
    *,
    mask: ArrayBool,
    config: MosaicConfig,
    progress: Progress,
) -> tuple[AlignedComponent, ...]:
    """Bring every connected set of keyframes into one plane, the largest set first.

    The first transforms follow the shortest path of links from the middle frame; a joint
    optimisation over all links follows; then loop keyframes that now overlap are linked, and
    the optimisation is repeated.
    """
    links = (*registration.links, *loops)
    connected = connected_components(links, registration.keys)
    aligned = []
    for number, members in enumerate(connected):
        progress(number, len(connected), "align")
        inside = tuple(link for link in links if link.a in members and link.b in members)
        if inside:
            aligned.append(
                _align_component(
                    inside, registration, store, mask=mask, config=config, progress=progress
                )
            )
        else:
            aligned.append(_single_frame(min(members)))
    return tuple(aligned)


def connected_components(links: Sequence[Link], keys: Sequence[int]) -> list[set[int]]:
    """Sets of keyframes that links connect, the largest first, of equal ones the earliest."""
    frames = sorted(keys)
    if not frames:
        return []
    _, labels = csgraph.connected_components(_graph(links, frames), directed=False)
    sets: dict[int, set[int]] = {}
    for frame, label in zip(frames, labels.tolist(), strict=True):
        sets.setdefault(label, set()).add(frame)
    return sorted(sets.values(), key=lambda members: (-len(members), min(members)))


def compose_along_paths(links: Sequence[Link], anchor: int) -> dict[int, ArrayF64]:
    """Compose each frame's transform along its cheapest path of links to the anchor."""
    frames = sorted({f for link in links for f in (link.a, link.b)})
    row = {frame: i for i, frame in enumerate(frames)}
    matrix = {(link.a, link.b): link.matrix for link in links}
    _, before = csgraph.dijkstra(
        _graph(links, frames), directed=False, indices=row[anchor], return_predecessors=True
    )
    placed: dict[int, ArrayF64] = {anchor: np.eye(3)}
    for frame in frames:
        path = [frame]
        while path[-1] not in placed:
            path.append(frames[int(before[row[path[-1]]])])
        for earlier, later in zip(path[-2::-1], path[:0:-1], strict=True):
            step = matrix.get((earlier, later))
            back = np.linalg.inv(matrix[(later, earlier)]) if step is None else step
            combined = placed[later] @ back
            placed[earlier] = normalised(combined)
    return placed


def _align_component(
    links: tuple[Link, ...],
    registration: Registration,
    store: LoopKeyframeStore,
    *,
    mask: ArrayBool,
    config: MosaicConfig,
    progress: Progress,
) -> AlignedComponent:
    model = registration.motion_model
    members = sorted({f for link in links for f in (link.a, link.b)})
    anchor = members[len(members) // 2]
    trusted = tuple(link for link in links if link.kind != "loop")
    start = compose_along_paths(trusted if _is_connected(trusted, members) else links, anchor)
    adjustment = adjust_transforms(start, links, anchor, model=model, mask=mask)
    tried = {(link.a, link.b) for link in links}
    for _ in range(LOOP_ROUNDS):
        overlap_loops = loops_by_overlap(
            store,
            adjustment.transforms,
            tried,
            mask=mask,
            model=model,
            config=config,
            progress=progress,
        )
        if not overlap_loops:
            break
        tried |= {(link.a, link.b) for link in overlap_loops}
        links = links + overlap_loops
        adjustment = adjust_transforms(adjustment.transforms, links, anchor, model=model, mask=mask)
    links = _agreeing_links(links, adjustment.transforms)
    adjustment = adjust_transforms(adjustment.transforms, links, anchor, model=model, mask=mask)
    placed = _linked_frames(_plausible_frames(adjustment.transforms, mask), links)
    covariance, sigma = _uncertainty(adjustment, mask)
    return AlignedComponent(placed, anchor, links, _errors(placed, links), covariance, sigma)


def _single_frame(frame: int) -> AlignedComponent:
    return AlignedComponent(
        {frame: np.eye(3)}, frame, (), {}, {frame: np.zeros((3, 3))}, {frame: 0.0}
    )


def _is_connected(links: Sequence[Link], members: Sequence[int]) -> bool:
    return len(connected_components(links, members)) == 1


def _agreeing_links(links: tuple[Link, ...], placed: dict[int, ArrayF64]) -> tuple[Link, ...]:
    """Links that the optimum does not contradict; all if these do not connect the component."""
    good = tuple(
        link for link in links if float(np.median(link_residuals(link, placed))) <= MAX_ERROR_PX
    )
    return good if good and _is_connected(good, list(placed)) else links


def _uncertainty(
    adjustment: Adjustment, mask: ArrayBool
) -> tuple[dict[int, ArrayF64], dict[int, float]]:
    """Covariance of (x, y, rotation) of the view's middle, and RMS sigma of its corners.

    To first order: a point x of the frame moves by d(A (I + D) x), through the projection.
    """
    corners = view_corners(mask)
    middle = corners.mean(axis=0)[None]
    neighbour = middle + np.array([[1.0, 0.0]])
    covariance, sigma = {}, {}
    for frame, matrix in adjustment.transforms.items():
        block = adjustment.covariance[frame]
        at_corners = _jacobian(matrix, corners, adjustment)
        spread = np.einsum("prk,kl,prl->p", at_corners, block, at_corners)
        sigma[frame] = float(np.sqrt(max(float(spread.mean()), 0.0)))
        at_neighbour = _jacobian(matrix, neighbour, adjustment)[0]
        at_middle = _jacobian(matrix, middle, adjustment)[0]
        step = transform_points(matrix, neighbour) - transform_points(matrix, middle)
        along = step[0] / max(float(step[0] @ step[0]), 1e-12)
        turn = (at_neighbour[1] - at_middle[1]) * along[0] - (
            at_neighbour[0] - at_middle[0]
        ) * along[1]
        rows_3 = np.vstack([at_middle, turn])
        covariance[frame] = rows_3 @ block @ rows_3.T
    return covariance, sigma


def _jacobian(matrix: ArrayF64, xy: ArrayF64, adjustment: Adjustment) -> ArrayF64:
    """(P, 2, K): motion of mosaic points by the increments of one frame."""
    points = np.hstack([xy, np.ones((len(xy), 1))])
    mapped = points @ matrix.T
    to_unit = np.linalg.inv(adjustment.unit)
    moves = np.einsum(
        "ij,kjl,lm,pm->pki",
        matrix @ adjustment.unit,
        adjustment.generators,
        to_unit,
        points,
        optimize=True,
    )
    w = mapped[:, 2][:, None]
    dx = moves[:, :, 0] / w - mapped[:, 0:1] * moves[:, :, 2] / w**2
    dy = moves[:, :, 1] / w - mapped[:, 1:2] * moves[:, :, 2] / w**2
    return np.asarray(np.stack([dx, dy], axis=1), np.float64)


def _graph(links: Sequence[Link], frames: Sequence[int]) -> sparse.csr_matrix:
    row = {frame: i for i, frame in enumerate(frames)}
    cost = [1.0 + HOP_COST / link.inliers for link in links]
    a, b = [row[link.a] for link in links], [row[link.b] for link in links]
    return sparse.csr_matrix((cost, (a, b)), shape=(len(frames), len(frames)))


def _plausible_frames(placed: dict[int, ArrayF64], mask: ArrayBool) -> dict[int, ArrayF64]:
    """Frames of plausible area that are not folded over."""
    corners = view_corners(mask)
    view_area = float(np.prod(corners[2] - corners[0]))
    plausible = {}
    for frame, matrix in placed.items():
        depth = depth_of(matrix, corners)
        x, y = transform_points(matrix, corners).T
        area = 0.5 * float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
        if depth.min() > 0.1 and view_area / MAX_AREA_RATIO < area < view_area * MAX_AREA_RATIO:
            plausible[frame] = matrix
    return plausible


def _linked_frames(placed: dict[int, ArrayF64], links: tuple[Link, ...]) -> dict[int, ArrayF64]:
    """Frames with at least one plausible link that fits within ``MAX_ERROR_PX``."""
    linked: set[int] = set()
    for link in links:
        if link.a not in placed or link.b not in placed:
            continue
        relative = np.linalg.solve(placed[link.b], placed[link.a])
        fits = float(np.median(link_residuals(link, placed))) <= MAX_ERROR_PX
        if fits and is_plausible(normalised(relative), link.xy_a):
            linked |= {link.a, link.b}
    return {frame: matrix for frame, matrix in placed.items() if frame in linked}


def _errors(placed: dict[int, ArrayF64], links: tuple[Link, ...]) -> dict[int, float]:
    residuals: dict[int, list[float]] = {}
    for link in links:
        if link.a in placed and link.b in placed:
            middle = float(np.median(link_residuals(link, placed)))
            residuals.setdefault(link.a, []).append(middle)
            residuals.setdefault(link.b, []).append(middle)
    return {frame: float(np.median(values)) for frame, values in residuals.items()}
