"""Equations of the local fit: cells of all linked pairs in the unknowns of all meshes.

The normal matrix is never formed, since it has several times the entries of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from ml.geometry import homography_jacobian, transform_points
from ml.mosaic.frames.field_of_view import view_corners
from ml.mosaic.local_mesh.cells import NODES, Cells
from ml.mosaic.local_mesh.prior import entries
from ml.types import ArrayBool, ArrayF32, ArrayF64

CELL_SIGMA_PX, CELL_SIGMA_SHARE = 0.1, 0.00075
"""No cell is believed to a smaller fraction of a px, because the errors of its px are related; nor
to a smaller share of the view, because a mesh that follows a frame's noise differs in two runs."""

BLOCK_CELLS = 32_768
"""Cells that become one sparse block of some 6 MB: while it is built it takes three times that."""

SOLVER_STEPS = 200
"""Largest number of conjugate gradient steps."""

SOLVER_SHARE = 1e-3
"""Relative residual at which the solver stops: meshes are then accurate to a hundredth of a px."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Cells as equations: ``rows`` (2 C, unknowns) give how b is displaced against a, px of a.

    Attributes:
        tensor: (C, 3), xx, xy, yy of the information.
        pull: (2 C,): see ``Cells``.
    """

    rows: sparse.csr_matrix
    tensor: ArrayF32
    pull: ArrayF32

    def product(self, step: ArrayF32) -> ArrayF32:
        """The normal matrix of these cells times the increments of the meshes."""
        x, y = (self.rows @ step).reshape(-1, 2).T
        xx, xy, yy = self.tensor.T
        pulled = np.stack([xx * x + xy * y, xy * x + yy * y], axis=1)
        return np.asarray(self.rows.T @ pulled.ravel(), np.float32)

    def diagonal(self) -> ArrayF64:
        """Diagonal of that matrix, without the terms that couple x and y."""
        weight = self.tensor[:, [0, 2]].ravel()
        return np.asarray(self.rows.power(2).T @ weight, np.float64)


class LocalEquations:
    """All cells of all pairs, in the increments of the meshes of N keyframes."""

    def __init__(
        self, frames: int, size_px: tuple[int, int], affine: ArrayF64, side_px: float
    ) -> None:
        self._unknowns = 2 * NODES**2 * frames
        self._size_px, self._affine = size_px, affine
        self._sigma_px = max(CELL_SIGMA_PX, CELL_SIGMA_SHARE * side_px)
        self._pending: list[tuple[Cells, int, int, ArrayF64]] = []
        self._count = 0
        self._blocks: list[_Block] = []

    def add(self, cells: Cells, a: int, b: int, b_from_a: ArrayF64) -> None:
        """Add the cells of a pair of keyframes, given by their rows."""
        self._pending.append((cells, a, b, b_from_a))
        self._count += len(cells.xy)
        if self._count >= BLOCK_CELLS:
            self._close_block()

    def solve(self, meshes: ArrayF64, prior: sparse.csr_matrix, links: float) -> ArrayF64:
        """Solve for the increments of the meshes.

        Args:
            meshes: (N, 9, 9, 2), px.
            prior: inverse covariance of their nodes.
            links: pairs per frame, by which the information of the cells is divided.
        """
        self._close_block()
        right, diagonal = -(prior @ meshes.ravel()), prior.diagonal()
        prior_32 = prior.astype(np.float32)
        for block in self._blocks:
            right = right - block.rows.T @ block.pull / links
            diagonal = diagonal + block.diagonal() / links

        def remove_affine(values: ArrayF64) -> ArrayF64:
            return without_affine(values.reshape(meshes.shape), self._affine).ravel()

        def product(step: ArrayF64) -> ArrayF64:
            narrow = step.astype(np.float32)
            out = np.asarray(prior_32 @ narrow, np.float64)
            for block in self._blocks:
                out += block.product(narrow) / links
            return remove_affine(out)

        def precondition(pull: ArrayF64) -> ArrayF64:
            return remove_affine(pull / diagonal)

        # every vector stays without an affine part: the right side has none, and no step adds one
        shape = (self._unknowns, self._unknowns)
        normal = LinearOperator(shape, matvec=product, dtype=np.float64)
        rough = LinearOperator(shape, matvec=precondition, dtype=np.float64)
        pull = remove_affine(right)
        step, _ = cg(normal, pull, rtol=SOLVER_SHARE, maxiter=SOLVER_STEPS, M=rough)
        return np.asarray(step, np.float64).reshape(meshes.shape)

    def _close_block(self) -> None:
        if self._pending:
            self._blocks.append(
                _block(self._pending, self._unknowns, self._size_px, self._sigma_px)
            )
        self._pending, self._count = [], 0


def _block(
    pairs: list[tuple[Cells, int, int, ArrayF64]],
    unknowns: int,
    size_px: tuple[int, int],
    sigma_px: float,
) -> _Block:
    """Two rows a cell: ``A^-1 d_b - d_a`` with A = db/da."""
    counts = [len(cells.xy) for cells, *_ in pairs]
    xy = np.concatenate([cells.xy for cells, *_ in pairs])
    tensor = np.concatenate([cells.tensor for cells, *_ in pairs])
    pull = np.concatenate([cells.pull for cells, *_ in pairs])
    frame_a, frame_b = (np.repeat([pair[side] for pair in pairs], counts) for side in (1, 2))
    b_from_a = np.repeat(np.stack([pair[3] for pair in pairs]), counts, axis=0)
    at_b = transform_points(b_from_a, xy[:, None])[:, 0]
    slope = homography_jacobian(b_from_a, xy[:, None])[:, 0]
    to_a = np.asarray(np.linalg.inv(slope), np.float64)
    parts = [entries(-np.eye(2), xy, frame_a, size_px), entries(to_a, at_b, frame_b, size_px)]
    # x and y of a are not coupled: the half of its entries that is zero is left out
    column_a, value_a = (np.stack([part[:, k, :, k] for k in (0, 1)], axis=1) for part in parts[0])
    column_b, value_b = (part.reshape(len(xy), 2, 8) for part in parts[1])
    column = np.concatenate([column_a, column_b], axis=2).astype(np.int32)
    value = np.concatenate([value_a, value_b], axis=2)
    starts = np.arange(0, column.size + 1, column.shape[2], dtype=np.int32)
    rows = sparse.csr_matrix((value.ravel(), column.ravel(), starts), shape=(2 * len(xy), unknowns))
    cap = _information_scale(tensor, sigma_px)
    narrow = tensor[:, [0, 0, 1], [0, 1, 1]] * cap[:, None]
    return _Block(rows, narrow.astype(np.float32), (pull * cap[:, None]).ravel().astype(np.float32))


def _information_scale(tensor: ArrayF64, sigma_px: float) -> ArrayF64:
    """(C,): factor of each cell's information that keeps its deviation at ``sigma_px`` or more."""
    half = 0.5 * np.trace(tensor, axis1=1, axis2=2)
    largest = half + np.hypot(0.5 * (tensor[:, 0, 0] - tensor[:, 1, 1]), tensor[:, 0, 1])
    return np.minimum(1.0, 1 / np.maximum(sigma_px**2 * largest, 1e-12))


def without_affine(meshes: ArrayF64, affine: ArrayF64) -> ArrayF64:
    """The nearest meshes, (N, 9, 9, 2), that have no affine part: see ``affine_of``."""
    flat = meshes.reshape(len(meshes), -1)
    return np.asarray((flat - (flat @ affine.T) @ affine).reshape(meshes.shape), np.float64)


def affine_of(view: ArrayBool) -> ArrayF64:
    """(6, 162): orthonormal rows whose product with a mesh is 0 where it has no affine part.

    That is, where the affine displacement that is nearest to it at the nodes of the view's box is
    zero. Nodes beyond the box do not count: no grey value holds them, and where the view fills half
    a frame, a mesh could otherwise move all tissue one way and the rest back. Those in its corners
    do count, though a round view shows nothing there: over high hills the plane that was found
    is not quite the nearest, and they leave the mesh some room.

    Args:
        view: (h, w), the px of a frame that the scope shows.
    """
    left, top, right, bottom = view_corners(view)[[0, 2]].ravel()
    height, width = view.shape
    share = np.outer(_node_weights(height, top, bottom), _node_weights(width, left, right))
    along = np.linspace(-1.0, 1.0, NODES)
    rows = [(share * by).ravel() for by in (1.0, along[None], along[:, None])]
    return np.kron(np.linalg.qr(np.stack(rows, axis=1))[0].T, np.eye(2))


def _node_weights(length: int, first: float, last: float) -> ArrayF64:
    """(9,): weight of each node along one axis, from the px between ``first`` and ``last``.

    The weight is twice the share of the node's hat function inside that range, at most 1.
    """
    px = np.arange(length)
    hat = np.maximum(0, 1 - np.abs(px / (length - 1) * (NODES - 1) - np.arange(NODES)[:, None]))
    inside = (px >= first) & (px <= last)
    return np.minimum(1.0, 2 * hat[:, inside].sum(axis=1) / hat.sum(axis=1))
