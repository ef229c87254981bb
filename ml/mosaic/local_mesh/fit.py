"""Stage 5, local fit: a smooth displacement of each keyframe for the motion that no plane explains.

Tissue is not a plane. What the joint optimisation leaves between overlapping frames is parallax and
tissue that moved: smooth within a frame, different in the next. Each keyframe gets a mesh of
displacements, bilinear between its nodes. All meshes are found together by Gauss-Newton on the grey
values of every linked pair, summed in cells as in ``direct``. They are held to zero where nothing
is seen, nodes to their neighbours, so that every frame's map can be inverted
(``ml.geometry.FrameMaps``), and each mesh to that of the keyframe before it (``local_prior``). No
mesh has an affine part over the view: a homography can take that up, the joint optimisation has
found it from all links at once, and along a chain of meshes it would drift.

Cost: one warp and a few sums a link and round, and a sparse system of 162 unknowns a keyframe
(``local_equations``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ml.geometry import mesh_shift, transform_points
from ml.mosaic.alignment.canvas import work_from_frame
from ml.mosaic.alignment.components import AlignedComponent
from ml.mosaic.direct.pyramid import LEVELS
from ml.mosaic.frames.field_of_view import view_side_px
from ml.mosaic.frames.sources import FrameSource
from ml.mosaic.frames.survey import Survey
from ml.mosaic.local_mesh.cells import NODES, cells_of_pair
from ml.mosaic.local_mesh.equations import LocalEquations, affine_of
from ml.mosaic.local_mesh.prior import node_places, prior
from ml.mosaic.local_mesh.validation import lowered_share, split_pairs
from ml.mosaic.local_mesh.views import KeyframeViews, LevelPairs, straighten_views
from ml.mosaic.registration.planarity import is_planar_scene
from ml.mosaic.registration.result import Tracked
from ml.types import ArrayF64, Progress

ROUNDS = (0, 1, 1, 1, 1)
"""The level that each round looks at: a coarse one reaches farther, a fine one is exact. Once is
enough for the first: whatever more rounds on it would change, the fine ones change again."""

SETTLED_PX = 0.06
"""Root mean square of what a fine round changes, frame px, under which it was the last."""

MAX_SLOPE = 0.3
"""Largest slope of a displacement, px per px: the map stays invertible within twenty steps."""

MIN_PX = 0.1
"""Root mean square of all displacements, frame px, under which the scene counts as a plane."""

MIN_GAIN = 0.05
"""Share by which meshes must lower the squared differences of grey of held-out pairs. Over planes
they lower them by up to 0.036, for they follow the noise of their own frame; over fetoscopy by
0.070, over hills of a fiftieth of the distance by 0.22: the threshold is midway by ratio."""

MAX_KEYFRAMES = 4_000
"""This many give a system of half a gigabyte; a longer sweep keeps its plane."""


def fit_locally(
    source: FrameSource,
    survey: Survey,
    aligned: AlignedComponent,
    *,
    work_dir: Path,
    progress: Progress,
) -> dict[int, ArrayF64]:
    """Fit the meshes: position of a keyframe -> (9, 9, 2) float64, frame px, see ``FrameMaps``.

    Empty if the scene is as good as a plane, by its links or by the pairs that were held out, and
    for more than ``MAX_KEYFRAMES``.
    """
    placed = aligned.transforms
    if len(placed) > MAX_KEYFRAMES or is_planar_scene(aligned.links, placed):
        return {}
    pairs = sorted({(k.a, k.b) for k in aligned.links if k.a in placed and k.b in placed})
    keys = sorted(placed)
    pairs, held_out = split_pairs(pairs)
    meshes = np.zeros((len(keys), NODES, NODES, 2))
    with tempfile.TemporaryDirectory(dir=work_dir) as folder:
        views = KeyframeViews.read(source, survey, keys, Path(folder))
        for number, level in enumerate(ROUNDS):
            progress(number, len(ROUNDS), "align")
            plane = _Plane.of(aligned, keys, survey, level, views.shapes[level])
            before, meshes = meshes, _round(plane, views, pairs, meshes)
            if level == ROUNDS[-1] and _rms(meshes - before) < SETTLED_PX:
                break
        held_out_pairs = _level_pairs(plane, views, held_out)
        has_gain = lowered_share(held_out_pairs, meshes * plane.per_frame_px) >= MIN_GAIN
    if not has_gain or _rms(meshes) < MIN_PX:
        return {}
    return dict(zip(keys, meshes, strict=True))


def tracked_mesh(mesh: ArrayF64, item: Tracked, survey: Survey) -> ArrayF64:
    """Mesh of a frame placed by a keyframe that has this mesh."""
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
    """A level's px: its shape, how many of them a frame px has, and H_plane_from_level by row.

    Attributes:
        side_px: of the view.
        affine: see ``affine_of``.
    """

    shape: tuple[int, int]
    per_frame_px: float
    row: dict[int, int]
    matrices: ArrayF64
    side_px: float
    affine: ArrayF64

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
        side_px = view_side_px(survey.mask) * LEVELS[level]
        per_frame_px = survey.scale * LEVELS[level]
        return cls(shape, per_frame_px, row, matrices, side_px, affine_of(survey.mask))

    @property
    def size_px(self) -> tuple[int, int]:
        return self.shape[1], self.shape[0]


def _level_pairs(
    plane: _Plane, views: KeyframeViews, pairs: Sequence[tuple[int, int]]
) -> LevelPairs:
    level = views.shapes.index(plane.shape)
    rows = [(plane.row[a], plane.row[b]) for a, b in pairs]
    motions = [np.linalg.solve(plane.matrices[j], plane.matrices[i]) for i, j in rows]
    return LevelPairs(views.images[level], views.masks[level], rows, motions)


def _round(
    plane: _Plane, views: KeyframeViews, pairs: Sequence[tuple[int, int]], meshes: ArrayF64
) -> ArrayF64:
    """Meshes in frame px after one Gauss-Newton step on a level."""
    level_meshes = meshes * plane.per_frame_px
    linked = _level_pairs(plane, views, pairs)
    equations = LocalEquations(len(meshes), plane.size_px, plane.affine, plane.side_px)
    view = straighten_views(linked.images, linked.masks, level_meshes)
    for (i, j), b_from_a in zip(linked.rows, linked.b_from_a, strict=True):
        cells = cells_of_pair(view(i), view(j), b_from_a)
        if cells is not None:
            equations.add(cells, i, j, b_from_a)
    inverse_covariance = prior(plane.matrices, plane.size_px, plane.side_px)
    step = equations.solve(level_meshes, inverse_covariance, len(pairs) / len(meshes))
    return _invertible(level_meshes + step, plane.size_px) / plane.per_frame_px


def _rms(meshes: ArrayF64) -> float:
    return float(np.sqrt(np.square(meshes).mean()))


def _invertible(meshes: ArrayF64, size_px: tuple[int, int]) -> ArrayF64:
    """Scale each mesh down until none of its slopes is above ``MAX_SLOPE``."""
    spacing = (np.array(size_px, np.float64) - 1) / (NODES - 1)
    across = np.linalg.norm(np.diff(meshes, axis=2), axis=3).max(axis=(1, 2)) / spacing[0]
    down = np.linalg.norm(np.diff(meshes, axis=1), axis=3).max(axis=(1, 2)) / spacing[1]
    steepest = np.maximum(across, down)
    return meshes * np.minimum(1.0, MAX_SLOPE / np.maximum(steepest, 1e-12))[:, None, None, None]
