"""Stage 5, local fit: what no plane explains, as a smooth displacement of each keyframe.

Tissue is no plane. What the joint optimisation leaves between overlapping frames is parallax and
tissue that moved: smooth within a frame, different in the next. Each keyframe gets a mesh of
displacements, bilinear between its nodes. All meshes are found together by Gauss-Newton on the grey
values of every linked pair, summed in cells as in ``direct``. They are held to zero where nothing
is seen, nodes to their neighbours, so that every frame's map can be inverted
(``ml.geometry.FrameMaps``), and each mesh to that of the keyframe before it (``local_prior``). No
mesh has an affine part: a homography can take that up, the joint optimisation has found it from all
links at once, and along a chain of meshes it would drift.

Cost: one warp and a few sums a link and round, and a sparse system of 162 unknowns a keyframe.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from ml.geometry import homography_jacobian, mesh_shift, transform_points
from ml.mosaic.align import AlignedComponent
from ml.mosaic.canvas import work_from_frame
from ml.mosaic.direct_views import LEVELS
from ml.mosaic.local_cells import NODES, Cells
from ml.mosaic.local_gain import parted
from ml.mosaic.local_pairs import cells_of_pairs, share_lowered
from ml.mosaic.local_prior import entries, node_places, prior
from ml.mosaic.local_views import KeyframeViews, LevelPairs
from ml.mosaic.registration import Tracked
from ml.mosaic.sources import FrameSource
from ml.mosaic.survey import Survey
from ml.types import ArrayF32, ArrayF64, ArrayI64, Progress

ROUNDS = (0, 0, 0, 1, 1)
"""The level that each round looks at: a coarse one reaches farther, a fine one is exact."""

CELL_SIGMA_PX = 0.1
"""No cell is believed to a smaller fraction of a px: its px do not err by themselves alone."""

MAX_SLOPE = 0.3
"""Of a displacement, px per px: under 1 the map can be inverted, and twenty steps do it."""

LEAST_PX = 0.1
"""Root mean square of all displacements, frame px, under which the scene counts as a plane."""

LEAST_GAIN = 0.05
"""Share by which meshes must lower the squared differences of grey of pairs that judge. Over planes
they lower them by up to 0.036, for they follow the noise of their own frame; over fetoscopy by
0.070, over hills of a fiftieth of the distance by 0.22: the threshold is midway by ratio."""

MAX_KEYFRAMES = 4_000
"""So many give a system of half a gigabyte; a longer sweep keeps its plane."""

BLOCK_ROWS = 65_536
"""Rows that become one sparse block of some 8 MB: built, they take two and a half times that."""

SOLVER_STEPS = 200
"""Of conjugate gradients: a round needs no more than a direction."""


def fit_locally(
    source: FrameSource,
    survey: Survey,
    aligned: AlignedComponent,
    *,
    work_dir: Path,
    progress: Progress,
) -> dict[int, ArrayF64]:
    """Position of a keyframe -> its mesh, (9, 9, 2) float64, frame px: see ``FrameMaps``.

    Empty where the scene is as good as a plane, and for more than ``MAX_KEYFRAMES``.
    """
    placed = aligned.transforms
    pairs = sorted({(k.a, k.b) for k in aligned.links if k.a in placed and k.b in placed})
    if not pairs or len(placed) > MAX_KEYFRAMES:
        return {}
    keys = sorted(placed)
    pairs, judging = parted(pairs)
    meshes = np.zeros((len(keys), NODES, NODES, 2))
    with tempfile.TemporaryDirectory(dir=work_dir) as folder:
        views = KeyframeViews.read(source, survey, keys, Path(folder))
        for done, level in enumerate(ROUNDS):
            progress(done, len(ROUNDS), "align")
            plane = _Plane.of(aligned, keys, survey, level, views.shapes[level])
            meshes = _round(plane, views, pairs, meshes)
        judged = _level_pairs(plane, views, judging)
        is_worth_it = share_lowered(judged, meshes * plane.per_frame_px) >= LEAST_GAIN
    if not is_worth_it or float(np.sqrt((meshes**2).mean())) < LEAST_PX:
        return {}
    return dict(zip(keys, meshes, strict=True))


def riding_mesh(mesh: ArrayF64, item: Tracked, survey: Survey) -> ArrayF64:
    """The mesh of a frame that rides along with the keyframe that has this one."""
    to_work = work_from_frame(survey.scale)
    to_key = np.linalg.inv(to_work) @ item.matrix @ to_work
    size = survey.size_px
    nodes = node_places(size)
    at_key = transform_points(to_key, nodes)
    moved = at_key + mesh_shift(mesh[None], size, at_key[None])[0]
    back = transform_points(np.linalg.inv(to_key), moved)
    return np.asarray((back - nodes).reshape(mesh.shape), np.float64)


@dataclass(frozen=True, slots=True)
class _Plane:
    """A level's px: its shape, how many of them a frame px has, and H_plane_from_level by row."""

    shape: tuple[int, int]
    per_frame_px: float
    row: dict[int, int]
    matrices: ArrayF64

    @classmethod
    def of(
        cls,
        aligned: AlignedComponent,
        keys: Sequence[int],
        survey: Survey,
        level: int,
        shape: tuple[int, int],
    ) -> _Plane:
        to_level = work_from_frame(LEVELS[level])
        matrices = np.stack([aligned.transforms[k] @ np.linalg.inv(to_level) for k in keys])
        row = {key: i for i, key in enumerate(keys)}
        return cls(shape, survey.scale * LEVELS[level], row, matrices)

    @property
    def size_px(self) -> tuple[int, int]:
        return self.shape[1], self.shape[0]


def _level_pairs(
    plane: _Plane, views: KeyframeViews, pairs: Sequence[tuple[int, int]]
) -> LevelPairs:
    level = views.shapes.index(plane.shape)
    rows = [(plane.row[a], plane.row[b]) for a, b in pairs]
    ways = [np.linalg.solve(plane.matrices[j], plane.matrices[i]) for i, j in rows]
    return LevelPairs(views.images[level], views.masks[level], rows, ways)


def _round(
    plane: _Plane, views: KeyframeViews, pairs: Sequence[tuple[int, int]], meshes: ArrayF64
) -> ArrayF64:
    """Meshes in frame px after one Gauss-Newton step on a level."""
    own = meshes * plane.per_frame_px
    linked = _level_pairs(plane, views, pairs)
    equations = _Equations(meshes.size)
    for number, found in enumerate(cells_of_pairs(linked, own)):
        if found is not None:
            i, j = linked.rows[number]
            equations.add(found, i, j, linked.b_from_a[number], plane.size_px)
    known = prior(plane.matrices, plane.size_px)
    step = equations.solve(own, known, len(pairs) / len(meshes))
    return _invertible(own + step, plane.size_px) / plane.per_frame_px


class _Equations:
    """Rows of a sparse least-squares problem in the increments of all meshes."""

    def __init__(self, unknowns: int) -> None:
        self._rows: list[ArrayI64] = []
        self._columns: list[ArrayI64] = []
        self._values: list[ArrayF32] = []
        self._right: list[ArrayF64] = []
        self._count = 0
        self._blocks: list[tuple[sparse.csr_matrix, ArrayF64]] = []
        self._unknowns = unknowns

    def add(
        self, cells: Cells, a: int, b: int, b_from_a: ArrayF64, size_px: tuple[int, int]
    ) -> None:
        """Two rows a cell: ``R' (A^-1 d_b - d_a) = -R^-1 pull`` with ``R R' = T``, A = db/da."""
        values, vectors = np.linalg.eigh(cells.tensor)
        root = np.sqrt(np.maximum(values, 1e-9))
        cap = np.minimum(1.0, 1 / (CELL_SIGMA_PX * root.max(axis=1)))[:, None]
        whiten = vectors.swapaxes(1, 2) * (root * cap)[:, :, None]
        pulled = np.einsum("cki,ci->ck", vectors.swapaxes(1, 2), cells.pull)
        right = -pulled / root * cap
        to_a = np.linalg.inv(homography_jacobian(b_from_a, cells.xy))
        at_b = transform_points(b_from_a, cells.xy)
        self._side(-whiten, cells.xy, a, size_px)
        self._side(whiten @ to_a, at_b, b, size_px)
        self._right.append(right.ravel())
        self._count += right.size
        if self._count >= BLOCK_ROWS:
            self._close_block()

    def _side(self, jacobian: ArrayF64, xy: ArrayF64, frame: int, size_px: tuple[int, int]) -> None:
        column, value = entries(jacobian, xy, frame, size_px)
        row = self._count + np.arange(2 * len(xy)).reshape(-1, 2)[:, :, None, None]
        self._rows.append(np.broadcast_to(row, value.shape).ravel())
        self._columns.append(column.ravel())
        self._values.append(value.ravel())

    def _close_block(self) -> None:
        if not self._count:
            return
        where = (np.concatenate(self._rows), np.concatenate(self._columns))
        shape = (self._count, self._unknowns)
        rows = sparse.csr_matrix((np.concatenate(self._values), where), shape=shape)
        self._blocks.append((rows, np.concatenate(self._right)))
        self._rows, self._columns, self._values, self._right = [], [], [], []
        self._count = 0

    def solve(self, meshes: ArrayF64, known: sparse.csr_matrix, links: float) -> ArrayF64:
        """Increments of the meshes; ``links`` a frame weigh as much as what is known before.

        The normal matrix is never formed: it has several times the entries of the rows.
        """
        self._close_block()
        right, diagonal = -(known @ meshes.ravel()), known.diagonal()
        for rows, lack in self._blocks:
            right = right + rows.T @ lack / links
            diagonal = diagonal + np.asarray(rows.power(2).sum(axis=0)).ravel() / links

        def product(step: ArrayF64) -> ArrayF64:
            out = known @ step
            for rows, _ in self._blocks:
                out = out + rows.T @ (rows @ step) / links
            return np.asarray(out)

        def bent(step: ArrayF64) -> ArrayF64:
            return _without_affine(step.reshape(meshes.shape)).ravel()

        shape = (self._unknowns, self._unknowns)
        normal = LinearOperator(shape, matvec=lambda x: bent(product(bent(x))), dtype=np.float64)
        nearly = LinearOperator(shape, matvec=lambda x: bent(bent(x) / diagonal), dtype=np.float64)
        step, _ = cg(normal, bent(right), rtol=1e-3, maxiter=SOLVER_STEPS, M=nearly)
        return np.asarray(step, np.float64).reshape(meshes.shape)


def _without_affine(meshes: ArrayF64) -> ArrayF64:
    """Each mesh less the affine displacement that is nearest to it at its nodes."""
    along = np.linspace(-1.0, 1.0, NODES)
    x, y = np.meshgrid(along, along)
    rows = np.stack([np.ones_like(x), x, y])
    basis = rows / np.linalg.norm(rows, axis=(1, 2), keepdims=True)
    shares = np.einsum("ayx,fyxd->afd", basis, meshes)
    return np.asarray(meshes - np.einsum("ayx,afd->fyxd", basis, shares))


def _invertible(meshes: ArrayF64, size_px: tuple[int, int]) -> ArrayF64:
    """Each mesh with no slope above ``MAX_SLOPE``: smaller as a whole where one is."""
    spacing = (np.array(size_px, np.float64) - 1) / (NODES - 1)
    across = np.linalg.norm(np.diff(meshes, axis=2), axis=3).max(axis=(1, 2)) / spacing[0]
    down = np.linalg.norm(np.diff(meshes, axis=1), axis=3).max(axis=(1, 2)) / spacing[1]
    steepest = np.maximum(across, down)
    return meshes * np.minimum(1.0, MAX_SLOPE / np.maximum(steepest, 1e-12))[:, None, None, None]
