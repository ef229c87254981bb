"""What is known of meshes before grey values: each is smooth, and like the one before it.

What stands out moves against the plane in proportion to how far the scope moved. From one keyframe
to the next that is little, so their meshes differ by little: without that each follows the noise of
its own frame, and two neighbours disagree by as much, though the rest of the sweep fits.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ml.geometry import homography_jacobian, transform_points
from ml.mosaic.local_cells import NODES
from ml.types import ArrayF32, ArrayF64, ArrayI64

NEIGHBOUR_SHARE = 0.0105
"""Standard deviation of the difference of two neighbouring nodes, as a share of the view: tissue
that stands out by a tenth of its distance moves so much between frames half a view apart."""

PRIOR_SHARE = 0.105
"""The same of a displacement itself, which holds the mesh where nothing is seen."""

BEND = 2.0
"""How much stiffer a mesh is against bending than against stretching."""

PARALLAX_SHARE = 0.1
"""Standard deviation of what a node moves from one keyframe to the next, as a share of how far the
view moved: tissue that stands out by a tenth of its distance."""

LEAST_MOTION_SHARE = 0.0084
"""Of the view: keyframes that lie nearer are held as if they were so far apart, as most are."""

LEAST_SHARED = 12
"""Nodes of a keyframe that the next one must show: fewer, a seventh, say nothing of the rest."""

Entries = tuple[ArrayI64, ArrayF32]


def prior(matrices: ArrayF64, size_px: tuple[int, int], side_px: float) -> sparse.csr_matrix:
    """The inverse covariance of all nodes of the meshes of N keyframes.

    Args:
        matrices: (N, 3, 3) H_plane_from_view, in the order of the sweep.
        size_px: (width, height) that a mesh spans. side_px: of the view, all shares are of it.
    """
    own = sparse.kron(sparse.identity(len(matrices)), _smooth_and_small(side_px))
    alike = _alike(matrices, size_px, side_px)
    return (own + alike.T @ alike).tocsr()


def node_places(size_px: tuple[int, int]) -> ArrayF64:
    """(81, 2): the nodes' places, px, row by row."""
    across, down = (np.linspace(0, n - 1, NODES) for n in size_px)
    return np.stack([axis.ravel() for axis in np.meshgrid(across, down)], axis=1)


def entries(
    jacobian: ArrayF64, xy: ArrayF64, frame: int | ArrayI64, size_px: tuple[int, int]
) -> Entries:
    """Coefficients, in the nodes of one mesh, of two equations per point.

    Args:
        jacobian: (P, 2, 2) or (2, 2), of the equations by the displacement at each point.
        xy: (P, 2), the points, px of the view. frame: of all of them, or (P,).
    Returns:
        Columns and values, (P, 2, 4, 2) both: point, equation, node around it, x and y.
    """
    node, share = _corners(xy, size_px)
    first = NODES**2 * np.asarray(frame, np.int64)[..., None]
    column = 2 * (first + node)[:, None, :, None] + np.arange(2)
    value = jacobian[..., :, None, :] * share[:, None, :, None]
    return np.broadcast_to(column, value.shape), value.astype(np.float32)


def _smooth_and_small(side_px: float) -> sparse.csr_matrix:
    """(162, 162): of one mesh by itself."""
    along = sparse.identity(NODES)
    slope = sparse.diags([-1.0, 1.0], [0, 1], shape=(NODES - 1, NODES))
    bend = sparse.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(NODES - 2, NODES)) * BEND
    parts = [sparse.kron(along, d) for d in (slope, bend)]
    parts += [sparse.kron(d, along) for d in (slope, bend)]
    smooth = sparse.vstack(parts) / (NEIGHBOUR_SHARE * side_px)
    rows = sparse.vstack([smooth, sparse.identity(NODES**2) / (PRIOR_SHARE * side_px)])
    return sparse.kron(rows.T @ rows, sparse.identity(2)).tocsr()


def _alike(matrices: ArrayF64, size_px: tuple[int, int], side_px: float) -> sparse.csr_matrix:
    """Rows that are 0 where each mesh is that of the keyframe before it, carried over."""
    nodes, last = node_places(size_px), np.array(size_px, np.float64) - 1
    columns: list[ArrayI64] = []
    values: list[ArrayF32] = []
    for before in range(len(matrices) - 1):
        way = np.linalg.solve(matrices[before + 1], matrices[before])
        there = transform_points(way, nodes)
        seen = ((there >= 0) & (there <= last)).all(axis=1)
        if seen.sum() < LEAST_SHARED:
            continue
        moved = float(np.median(np.linalg.norm(there - nodes, axis=1)))
        sigma = PARALLAX_SHARE * max(moved, LEAST_MOTION_SHARE * side_px)
        back = np.linalg.inv(homography_jacobian(way, nodes[seen]))
        own = np.broadcast_to(-np.eye(2), back.shape)
        one = entries(np.asarray(own / sigma), nodes[seen], before, size_px)
        other = entries(np.asarray(back / sigma), there[seen], before + 1, size_px)
        columns.append(np.concatenate([one[0], other[0]], axis=2).reshape(-1, 16))
        values.append(np.concatenate([one[1], other[1]], axis=2).reshape(-1, 16))
    unknowns = 2 * NODES**2 * len(matrices)
    if not columns:
        return sparse.csr_matrix((0, unknowns))
    at, value = np.concatenate(columns), np.concatenate(values)
    starts = np.arange(0, at.size + 1, at.shape[1])
    return sparse.csr_matrix((value.ravel(), at.ravel(), starts), shape=(len(at), unknowns))


def _corners(xy: ArrayF64, size_px: tuple[int, int]) -> tuple[ArrayI64, ArrayF64]:
    """(P, 4) int64, (P, 4): the nodes around each point, and their shares in it."""
    last = np.array(size_px, np.float64) - 1
    at = np.clip(xy / last * (NODES - 1), 0, NODES - 1 - 1e-6)
    low = at.astype(np.int64)
    x, y = (at - low).T
    node = low[:, 1] * NODES + low[:, 0]
    around = node[:, None] + np.array([0, 1, NODES, NODES + 1])
    return around, np.stack([(1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y], axis=1)
