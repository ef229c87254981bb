"""Priors on meshes: each is smooth, and similar to the previous one.

Raised tissue moves against the plane in proportion to the motion of the scope. From one keyframe
to the next that is little, so their meshes differ by little. Without this prior each mesh follows
the noise of its own frame, and neighbours disagree by as much.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ml.geometry import homography_jacobian, transform_points
from ml.mosaic.local_mesh.cells import NODES
from ml.types import ArrayF32, ArrayF64, ArrayI64

NEIGHBOUR_SHARE = 0.0105
"""Standard deviation of the difference of two neighbouring nodes, as a share of the view: tissue
raised by a tenth of its distance moves so much between frames half a view apart."""

PRIOR_SHARE = 0.105
"""The same of a displacement itself, which holds the mesh where nothing is seen."""

BEND = 2.0
"""Ratio of the stiffness against bending to that against stretching."""

PARALLAX_SHARE = 0.1
"""Standard deviation of a node's motion from one keyframe to the next, as a share of the view's
motion: tissue raised by a tenth of its distance."""

MIN_MOTION_SHARE = 0.0084
"""Smallest motion between keyframes that is assumed, as a share of the view."""

MIN_SHARED = 12
"""Nodes of a keyframe that the next one must show: fewer, a seventh, do not determine the rest."""

Entries = tuple[ArrayI64, ArrayF32]


def prior(matrices: ArrayF64, size_px: tuple[int, int], side_px: float) -> sparse.csr_matrix:
    """The inverse covariance of all nodes of the meshes of N keyframes.

    Args:
        matrices: (N, 3, 3) H_plane_from_view, in the order of the sweep.
        size_px: (width, height) that a mesh spans.
        side_px: of the view, all shares are of it.
    """
    single = sparse.kron(sparse.identity(len(matrices)), _smooth_and_small(side_px))
    motion = _motion_prior(matrices, size_px, side_px)
    return (single + motion.T @ motion).tocsr()


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
        xy: (P, 2), the points, px of the view.
        frame: of all of them, or (P,).
    Returns:
        Columns and values, (P, 2, 4, 2) both: point, equation, node around it, x and y.
    """
    node, share = _corners(xy, size_px)
    first = NODES**2 * np.asarray(frame, np.int64)[..., None]
    column = 2 * (first + node)[:, None, :, None] + np.arange(2)
    value = jacobian[..., :, None, :] * share[:, None, :, None]
    return np.broadcast_to(column, value.shape), value.astype(np.float32)


def _smooth_and_small(side_px: float) -> sparse.csr_matrix:
    """(162, 162): inverse covariance of one mesh without its neighbours."""
    along = sparse.identity(NODES)
    slope = sparse.diags([-1.0, 1.0], [0, 1], shape=(NODES - 1, NODES))
    bend = sparse.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(NODES - 2, NODES)) * BEND
    parts = [sparse.kron(along, d) for d in (slope, bend)]
    parts += [sparse.kron(d, along) for d in (slope, bend)]
    smooth = sparse.vstack(parts) / (NEIGHBOUR_SHARE * side_px)
    rows = sparse.vstack([smooth, sparse.identity(NODES**2) / (PRIOR_SHARE * side_px)])
    return sparse.kron(rows.T @ rows, sparse.identity(2)).tocsr()


def _motion_prior(
    matrices: ArrayF64, size_px: tuple[int, int], side_px: float
) -> sparse.csr_matrix:
    """Rows whose product is 0 where each mesh is the previous keyframe's, mapped into its view."""
    nodes, last = node_places(size_px), np.array(size_px, np.float64) - 1
    columns: list[ArrayI64] = []
    values: list[ArrayF32] = []
    for before in range(len(matrices) - 1):
        motion = np.linalg.solve(matrices[before + 1], matrices[before])
        at_next = transform_points(motion, nodes)
        inside = ((at_next >= 0) & (at_next <= last)).all(axis=1)
        if inside.sum() < MIN_SHARED:
            continue
        moved = float(np.median(np.linalg.norm(at_next - nodes, axis=1)))
        sigma = PARALLAX_SHARE * max(moved, MIN_MOTION_SHARE * side_px)
        back = np.linalg.inv(homography_jacobian(motion, nodes[inside]))
        identity = np.broadcast_to(-np.eye(2), back.shape)
        from_this = entries(np.asarray(identity / sigma), nodes[inside], before, size_px)
        from_next = entries(np.asarray(back / sigma), at_next[inside], before + 1, size_px)
        columns.append(np.concatenate([from_this[0], from_next[0]], axis=2).reshape(-1, 16))
        values.append(np.concatenate([from_this[1], from_next[1]], axis=2).reshape(-1, 16))
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
