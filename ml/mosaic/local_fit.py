"""Stage 5, local fit: what no plane explains, as a smooth displacement of each keyframe.

Tissue is no plane. What the joint optimisation leaves between overlapping frames is parallax and
tissue that moved: smooth within a frame, different in the next. Each keyframe gets a mesh of
displacements, bilinear between its nodes. All meshes are found together by Gauss-Newton on the grey
values of every linked pair, summed in cells as in ``direct``. They are held to zero where nothing
is seen, and nodes to their neighbours, so that every frame's map can be inverted
(``ml.geometry.FrameMaps``).

Cost: one warp and a few sums a link and round, and a sparse system of 162 unknowns a keyframe.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from ml.errors import BadInputError
from ml.geometry import homography_jacobian, mesh_shift, transform_points
from ml.mosaic.align import AlignedComponent
from ml.mosaic.canvas import work_from_frame
from ml.mosaic.direct_views import LEVELS
from ml.mosaic.local_cells import NODES, Cells, cells_of_pair
from ml.mosaic.registration import Tracked
from ml.mosaic.sources import FrameSource
from ml.mosaic.survey import Survey, usable_frames
from ml.mosaic.views import frame_view
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64, Progress

ROUNDS = (0, 0, 0, 1, 1)
"""The level that each round looks at: a coarse one reaches farther, a fine one is exact."""

NEIGHBOUR_SHARE = 0.01
"""Standard deviation of the difference of two neighbouring nodes, as a share of the view: tissue
that stands out by a tenth of its distance moves so much between frames half a view apart."""

PRIOR_SHARE = 0.1
"""The same of a displacement itself, which holds the mesh where nothing is seen."""

BEND = 2.0
"""How much stiffer a mesh is against bending than against stretching."""

CELL_SIGMA_PX = 0.1
"""No cell is believed to a smaller fraction of a px: its px do not err by themselves alone."""

MAX_SLOPE = 0.3
"""Of a displacement, px per px: under 1 the map can be inverted, and twenty steps do it."""

LEAST_PX = 0.1
"""Root mean square of all displacements, frame px, under which the scene counts as a plane."""

MAX_KEYFRAMES = 4_000
"""So many give a system of half a gigabyte; a longer sweep keeps its plane."""

BLOCK_ROWS = 65_536
"""Rows that become one sparse block of some 8 MB: built, they take two and a half times that."""

SOLVER_STEPS = 200
"""Of conjugate gradients: a round needs no more than a direction."""

VIEWS_IN_MEMORY = 64
"""Straightened views of a round; links reach some twenty keyframes back."""


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
    meshes = np.zeros((len(keys), NODES, NODES, 2))
    with tempfile.TemporaryDirectory(dir=work_dir) as folder:
        views = _Views.read(source, survey, keys, Path(folder))
        for done, level in enumerate(ROUNDS):
            progress(done, len(ROUNDS), "align")
            plane = _Plane.of(aligned, keys, survey, level, views.shapes[level])
            meshes = _round(plane, views, pairs, meshes)
    if float(np.sqrt((meshes**2).mean())) < LEAST_PX:
        return {}
    return dict(zip(keys, meshes, strict=True))


def riding_mesh(mesh: ArrayF64, item: Tracked, survey: Survey) -> ArrayF64:
    """The mesh of a frame that rides along with the keyframe that has this one."""
    to_work = work_from_frame(survey.scale)
    to_key = np.linalg.inv(to_work) @ item.matrix @ to_work
    size = survey.size_px
    nodes = _nodes(size)
    at_key = transform_points(to_key, nodes)
    moved = at_key + mesh_shift(mesh[None], size, at_key[None])[0]
    back = transform_points(np.linalg.inv(to_key), moved)
    return np.asarray((back - nodes).reshape(mesh.shape), np.float64)


@dataclass(frozen=True, slots=True)
class _Views:
    """Keyframes prepared for direct alignment, on disk: per level (N, h, w) images and masks."""

    images: tuple[np.memmap, ...]
    masks: tuple[np.memmap, ...]

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        return tuple((image.shape[1], image.shape[2]) for image in self.images)

    @classmethod
    def read(cls, source: FrameSource, survey: Survey, keys: Sequence[int], folder: Path) -> _Views:
        row = {key: i for i, key in enumerate(keys)}
        found: _Views | None = None
        for position, rgb in usable_frames(source, survey, first=keys[0]):
            if position > keys[-1]:
                break
            if position not in row:
                continue
            view = frame_view(position, rgb, survey).direct
            if found is None:
                found = cls(
                    tuple(_raw(folder / f"{i}.raw", np.float32, len(keys), image.shape)
                          for i, image in enumerate(view.images)),
                    tuple(_raw(folder / f"{i}.seen", np.uint8, len(keys), mask.shape)
                          for i, mask in enumerate(view.masks)),
                )  # fmt: skip
            for level in range(len(LEVELS)):
                found.images[level][row[position]] = view.images[level]
                found.masks[level][row[position]] = view.masks[level]
        if found is None:
            raise BadInputError("frames: the source no longer has those that were registered")
        return found


def _raw(path: Path, kind: type, count: int, shape: tuple[int, ...]) -> np.memmap:
    return np.memmap(path, kind, mode="w+", shape=(count, *shape))


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


def _round(
    plane: _Plane, views: _Views, pairs: Sequence[tuple[int, int]], meshes: ArrayF64
) -> ArrayF64:
    """Meshes in frame px after one Gauss-Newton step on a level."""
    level = views.shapes.index(plane.shape)
    own = meshes * plane.per_frame_px
    straight = _straightened(views.images[level], views.masks[level], own)
    equations = _Equations(meshes.size)
    for a, b in pairs:
        i, j = plane.row[a], plane.row[b]
        b_from_a = np.linalg.solve(plane.matrices[j], plane.matrices[i])
        found = cells_of_pair(straight(i), straight(j), b_from_a)
        if found is not None:
            equations.add(found, i, j, b_from_a, plane.size_px)
    step = equations.solve(own, max(plane.shape), len(pairs) / len(meshes))
    return _invertible(own + step, plane.size_px) / plane.per_frame_px


def _straightened(
    images: np.memmap, masks: np.memmap, meshes: ArrayF64
) -> Callable[[int], tuple[ArrayF32, ArrayBool]]:
    """A row -> the view as a plane would show it by its mesh so far, and where it is trusted."""

    @lru_cache(maxsize=VIEWS_IN_MEMORY)
    def view(row: int) -> tuple[ArrayF32, ArrayBool]:
        x, y = mesh_maps(meshes[row], (images.shape[2], images.shape[1]))
        image = cv2.remap(np.asarray(images[row]), x, y, cv2.INTER_LINEAR)
        seen = cv2.remap(np.asarray(masks[row]), x, y, cv2.INTER_NEAREST) > 0
        return np.asarray(image, np.float32), np.asarray(seen)

    return view


def mesh_maps(mesh: ArrayF64, size_px: tuple[int, int]) -> tuple[ArrayF32, ArrayF32]:
    """Two (h, w) float32 for ``cv2.remap``: where each px of a straightened frame is taken from."""
    width, height = size_px
    across = np.linspace(0, mesh.shape[1] - 1, width, dtype=np.float32)
    down = np.linspace(0, mesh.shape[0] - 1, height, dtype=np.float32)
    at = np.meshgrid(across, down)
    shift = cv2.remap(mesh.astype(np.float32), *at, cv2.INTER_LINEAR)
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    return x + shift[:, :, 0], y + shift[:, :, 1]


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
        node, share = _corners(xy, size_px)
        column = 2 * (frame * NODES**2 + node)[:, None, :, None] + np.arange(2)
        value = jacobian[:, :, None, :] * share[:, None, :, None]
        row = self._count + np.arange(2 * len(xy)).reshape(-1, 2)[:, :, None, None]
        shape = value.shape
        self._rows.append(np.broadcast_to(row, shape).ravel())
        self._columns.append(np.broadcast_to(column, shape).ravel())
        self._values.append(value.astype(np.float32).ravel())

    def _close_block(self) -> None:
        if not self._count:
            return
        where = (np.concatenate(self._rows), np.concatenate(self._columns))
        shape = (self._count, self._unknowns)
        rows = sparse.csr_matrix((np.concatenate(self._values), where), shape=shape)
        self._blocks.append((rows, np.concatenate(self._right)))
        self._rows, self._columns, self._values, self._right = [], [], [], []
        self._count = 0

    def solve(self, meshes: ArrayF64, side_px: int, links: float) -> ArrayF64:
        """Increments of the meshes; ``links`` a frame weigh as much as the priors do.

        The normal matrix is never formed: it has several times the entries of the rows.
        """
        self._close_block()
        prior = _prior(len(meshes), side_px)
        right, diagonal = -(prior @ meshes.ravel()), prior.diagonal()
        for rows, lack in self._blocks:
            right = right + rows.T @ lack / links
            diagonal = diagonal + np.asarray(rows.power(2).sum(axis=0)).ravel() / links

        def product(step: ArrayF64) -> ArrayF64:
            out = prior @ step
            for rows, _ in self._blocks:
                out = out + rows.T @ (rows @ step) / links
            return np.asarray(out)

        shape = (self._unknowns, self._unknowns)
        normal = LinearOperator(shape, matvec=product, dtype=np.float64)
        step, _ = cg(normal, right, rtol=1e-3, maxiter=SOLVER_STEPS, M=sparse.diags(1 / diagonal))
        return np.asarray(step, np.float64).reshape(meshes.shape)


def _prior(frames: int, side_px: int) -> sparse.csr_matrix:
    """Meshes are smooth and small: the inverse covariance of all of their nodes."""
    along = sparse.identity(NODES)
    slope = sparse.diags([-1.0, 1.0], [0, 1], shape=(NODES - 1, NODES))
    bend = sparse.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(NODES - 2, NODES)) * BEND
    parts = [sparse.kron(along, d) for d in (slope, bend)]
    parts += [sparse.kron(d, along) for d in (slope, bend)]
    smooth = sparse.vstack(parts) / (NEIGHBOUR_SHARE * side_px)
    rows = sparse.vstack([smooth, sparse.identity(NODES**2) / (PRIOR_SHARE * side_px)])
    one = sparse.kron(rows.T @ rows, sparse.identity(2))
    return sparse.kron(sparse.identity(frames), one).tocsr()


def _nodes(size_px: tuple[int, int]) -> ArrayF64:
    """(81, 2): the nodes' places, px, row by row."""
    across, down = (np.linspace(0, n - 1, NODES) for n in size_px)
    return np.stack([axis.ravel() for axis in np.meshgrid(across, down)], axis=1)


def _corners(xy: ArrayF64, size_px: tuple[int, int]) -> tuple[ArrayI64, ArrayF64]:
    """(P, 4) int64, (P, 4): the nodes around each point, and their shares in it."""
    last = np.array(size_px, np.float64) - 1
    at = np.clip(xy / last * (NODES - 1), 0, NODES - 1 - 1e-6)
    low = at.astype(np.int64)
    x, y = (at - low).T
    node = low[:, 1] * NODES + low[:, 0]
    around = node[:, None] + np.array([0, 1, NODES, NODES + 1])
    return around, np.stack([(1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y], axis=1)


def _invertible(meshes: ArrayF64, size_px: tuple[int, int]) -> ArrayF64:
    """Each mesh with no slope above ``MAX_SLOPE``: smaller as a whole where one is."""
    spacing = (np.array(size_px, np.float64) - 1) / (NODES - 1)
    across = np.linalg.norm(np.diff(meshes, axis=2), axis=3).max(axis=(1, 2)) / spacing[0]
    down = np.linalg.norm(np.diff(meshes, axis=1), axis=3).max(axis=(1, 2)) / spacing[1]
    steepest = np.maximum(across, down)
    return meshes * np.minimum(1.0, MAX_SLOPE / np.maximum(steepest, 1e-12))[:, None, None, None]
