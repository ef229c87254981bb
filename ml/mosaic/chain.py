"""Stage 3, chain: connect the links, place every frame from the anchor, limit the drift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ml.keypoints import load_descriptor, transform_points
from ml.mosaic.adjust import adjust_transforms, link_residuals
from ml.mosaic.config import MosaicConfig
from ml.mosaic.register import Features, Link, Registration, is_plausible, link_frames
from ml.types import ArrayBool, ArrayF64, Progress

HOP_COST = 30.0
"""Inliers that make a link twice as trusted as a hop: short, well-held paths come first."""

MAX_AREA_RATIO = 16.0
MAX_ERROR_PX = 6.0


@dataclass(frozen=True, slots=True)
class Chain:
    """Frames of the main chain, placed in the plane of the anchor's working image.

    Attributes:
        transforms: position of a frame -> (3, 3) float64, working px to the anchor's working px.
        anchor: position of the anchor frame.
        links: all links that hold the chain.
        error_px: position -> median residual of its links, working px.
    """

    transforms: dict[int, ArrayF64]
    anchor: int
    links: tuple[Link, ...]
    error_px: dict[int, float]


def chain_frames(
    registration: Registration, *, mask: ArrayBool, config: MosaicConfig, progress: Progress
) -> Chain | None:
    """Place the largest connected set of frames; None where no two frames are linked.

    The first placement follows the shortest path of links from the middle frame; a joint
    least-squares adjustment over all links, skips included, follows; then links between key
    frames that lie over each other are added and the adjustment is repeated.
    """
    progress(0, 3, "align")
    members = main_component(registration.links)
    if len(members) < 2:
        return None
    links = tuple(link for link in registration.links if link.a in members and link.b in members)
    anchor = sorted(members)[len(members) // 2]
    start = place_by_paths(links, anchor)
    placed = adjust_transforms(start, links, anchor, model=registration.model, mask=mask)
    progress(1, 3, "align")
    more = revisit(registration, placed, mask=mask, config=config)
    if more:
        links = links + more
        placed = adjust_transforms(placed, links, anchor, model=registration.model, mask=mask)
    progress(2, 3, "align")
    placed = _held(_sane(placed, mask), links)
    return Chain(placed, anchor, links, _errors(placed, links))


def main_component(links: tuple[Link, ...]) -> set[int]:
    """Frames of the largest connected set; of equal ones the earliest."""
    frames = sorted({f for link in links for f in (link.a, link.b)})
    if not frames:
        return set()
    graph = _graph(links, frames)
    _, labels = csgraph.connected_components(graph, directed=False)
    best = int(np.argmax(np.bincount(labels)))
    return {frame for frame, label in zip(frames, labels, strict=True) if label == best}


def place_by_paths(links: tuple[Link, ...], anchor: int) -> dict[int, ArrayF64]:
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
            placed[earlier] = combined / combined[2, 2]
    return placed


def revisit(
    registration: Registration,
    placed: dict[int, ArrayF64],
    *,
    mask: ArrayBool,
    config: MosaicConfig,
) -> tuple[Link, ...]:
    """Links between key frames that lie over each other without being linked yet."""
    descriptor = load_descriptor(config.descriptor)
    keys = [k for k in registration.key_frames if k.frame in placed]
    known = {(link.a, link.b) for link in registration.links}
    found = []
    for a, b in _near_pairs(keys, placed, mask, config.revisit_links):
        if (a.frame, b.frame) in known or (b.frame, a.frame) in known:
            continue
        link = link_frames(a, b, descriptor=descriptor, model=registration.model, config=config)
        if link is not None:
            found.append(link)
    return tuple(found)


def _near_pairs(
    keys: list[Features], placed: dict[int, ArrayF64], mask: ArrayBool, count: int
) -> list[tuple[Features, Features]]:
    """For each key frame up to ``count`` earlier ones whose centres lie within half its width,

    spread over time: the earliest ones hold the most drift.
    """
    if len(keys) < 2 or count < 1:
        return []
    rows, columns = np.nonzero(mask)
    middle = np.array([[columns.mean(), rows.mean()]])
    reach = 0.5 * min(np.ptp(rows), np.ptp(columns))
    centre = np.concatenate([transform_points(placed[k.frame], middle) for k in keys])
    pairs = []
    for i in range(1, len(keys)):
        distance = np.hypot(*(centre[:i] - centre[i]).T)
        near = np.flatnonzero(distance < reach)
        chosen = (
            near[np.unique(np.linspace(0, len(near) - 1, count).astype(int))] if len(near) else near
        )
        pairs += [(keys[i], keys[int(j)]) for j in chosen]
    return pairs


def _graph(links: tuple[Link, ...], frames: list[int]) -> sparse.csr_matrix:
    row = {frame: i for i, frame in enumerate(frames)}
    cost = [1.0 + HOP_COST / link.inliers for link in links]
    a, b = [row[link.a] for link in links], [row[link.b] for link in links]
    return sparse.csr_matrix((cost, (a, b)), shape=(len(frames), len(frames)))


def _sane(placed: dict[int, ArrayF64], mask: ArrayBool) -> dict[int, ArrayF64]:
    """Without frames that came out absurdly large, small or folded over."""
    rows, columns = np.nonzero(mask)
    left, right, top, bottom = columns.min(), columns.max(), rows.min(), rows.max()
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)
    whole = float((right - left) * (bottom - top))
    kept = {}
    for frame, matrix in placed.items():
        depth = corners @ matrix[2, :2] + matrix[2, 2]
        x, y = transform_points(matrix, corners).T
        area = 0.5 * float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
        if depth.min() > 0.1 and whole / MAX_AREA_RATIO < area < whole * MAX_AREA_RATIO:
            kept[frame] = matrix
    return kept


def _held(placed: dict[int, ArrayF64], links: tuple[Link, ...]) -> dict[int, ArrayF64]:
    """Frames that at least one link holds: it fits within ``MAX_ERROR_PX``, plausibly."""
    held: set[int] = set()
    for link in links:
        if link.a not in placed or link.b not in placed:
            continue
        relative = np.linalg.solve(placed[link.b], placed[link.a])
        fits = float(np.median(link_residuals(link, placed))) <= MAX_ERROR_PX
        if fits and is_plausible(relative / relative[2, 2], link.xy_a):
            held |= {link.a, link.b}
    return {frame: matrix for frame, matrix in placed.items() if frame in held}


def _errors(placed: dict[int, ArrayF64], links: tuple[Link, ...]) -> dict[int, float]:
    residuals: dict[int, list[float]] = {}
    for link in links:
        if link.a in placed and link.b in placed:
            middle = float(np.median(link_residuals(link, placed)))
            residuals.setdefault(link.a, []).append(middle)
            residuals.setdefault(link.b, []).append(middle)
    return {frame: float(np.median(values)) for frame, values in residuals.items()}
