"""The local fit's step, against the same problem written out in full and solved at once."""

from __future__ import annotations

import numpy as np
import pytest

from ml.geometry import homography_jacobian, mesh_shift, transform_points
from ml.mosaic.direct.residuals import spread_of
from ml.mosaic.local_mesh import equations as local_equations
from ml.mosaic.local_mesh.cells import NODES, Cells, cell_sums_matrix
from ml.mosaic.local_mesh.equations import CELL_SIGMA_PX, LocalEquations, affine_of, without_affine
from ml.mosaic.local_mesh.prior import prior

SIZE = (97, 81)
POSES = np.stack(
    [
        np.eye(3),
        [[1.02, 0.05, 9], [-0.04, 0.99, 4], [2e-4, -1e-4, 1]],
        [[0.97, -0.03, 20], [0.06, 1.01, -5], [-1e-4, 2e-4, 1]],
    ]
)
PAIRS = [(1, 0), (2, 0), (2, 1)]
ROWS, COLUMNS = np.mgrid[: SIZE[1], : SIZE[0]]
VIEW = np.hypot(COLUMNS - 30, ROWS - 40) < 28
"""A scope that shows a third of the frame, to one side."""
AFFINE = affine_of(VIEW)


def _cells(rng: np.random.Generator) -> Cells:
    root = rng.normal(size=(30, 2, 2)) * rng.uniform(0.1, 30, (30, 1, 1))
    xy = rng.uniform(0, np.array(SIZE) - 1, (30, 2))
    return Cells(xy, root @ root.transpose(0, 2, 1), rng.normal(size=(30, 2)))


def _written_out(found: list[Cells], meshes: np.ndarray, links: float) -> np.ndarray:
    """Every unknown moved by itself, the normal matrix formed, affine parts left out."""
    unknowns = meshes.size
    units = np.eye(unknowns).reshape(unknowns, *meshes.shape)
    known = prior(POSES, SIZE, max(SIZE)).toarray()
    normal, right = known.copy(), -known @ meshes.ravel()
    for cells, (a, b) in zip(found, PAIRS, strict=True):
        way = np.linalg.solve(POSES[b], POSES[a])
        slope = homography_jacobian(way, cells.xy)
        for k, xy in enumerate(cells.xy):
            at_b = transform_points(way, xy[None])
            own = mesh_shift(units[:, a], SIZE, np.repeat(xy[None, None], unknowns, 0))[:, 0]
            other = mesh_shift(units[:, b], SIZE, np.repeat(at_b[None], unknowns, 0))[:, 0]
            row = np.linalg.solve(slope[k], other.T) - own.T
            largest = np.linalg.eigvalsh(cells.tensor[k])[-1]
            share = min(1.0, 1 / (CELL_SIGMA_PX**2 * largest))
            normal += share / links * row.T @ cells.tensor[k] @ row
            right -= share / links * row.T @ cells.pull[k]
    bent = np.stack([without_affine(unit, AFFINE).ravel() for unit in units])
    values, vectors = np.linalg.eigh(bent)
    basis = vectors[:, values > 0.5]
    step = basis @ np.linalg.solve(basis.T @ normal @ basis, basis.T @ right)
    return np.asarray(step.reshape(meshes.shape))


@pytest.mark.parametrize("at_once", [10_000, 40])
def test_a_step_equals_the_dense_solution(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_equations, "BLOCK_CELLS", at_once)
    monkeypatch.setattr(local_equations, "SOLVER_SHARE", 1e-6)
    monkeypatch.setattr(local_equations, "SOLVER_STEPS", 3_000)
    rng = np.random.default_rng(0)
    result = [_cells(rng) for _ in PAIRS]
    meshes = without_affine(rng.normal(size=(3, NODES, NODES, 2)), AFFINE)
    equations = LocalEquations(3, SIZE, AFFINE, max(SIZE))
    for cells, (a, b) in zip(result, PAIRS, strict=True):
        equations.add(cells, a, b, np.linalg.solve(POSES[b], POSES[a]))
    step = equations.solve(meshes, prior(POSES, SIZE, max(SIZE)), 1.5)
    wanted = _written_out(result, meshes, 1.5)
    assert np.abs(wanted).max() > 0.5
    assert np.abs(step - wanted).max() < 1e-3
    assert np.abs(step - without_affine(step, AFFINE)).max() < 1e-9


def test_the_affine_part_at_the_nodes_of_the_view_is_zero() -> None:
    view = np.zeros((SIZE[1], SIZE[0]), bool)
    view[20:61, 12:49] = (
        True  # from the second node to the fifth, and from the third to the seventh
    )
    mesh = np.random.default_rng(3).normal(size=(1, NODES, NODES, 2))
    rest = without_affine(mesh, affine_of(view))
    row, column = (axis.ravel() for axis in np.mgrid[2:7, 1:5])
    design = np.column_stack([column, row, np.ones(len(row))])
    before, after = (
        np.abs(np.linalg.lstsq(design, own[0, row, column], rcond=None)[0]).max()
        for own in (mesh, rest)
    )
    assert before > 0.05
    assert after < 1e-9
    beyond = np.ones((NODES, NODES), bool)
    beyond[2:7, 1:5] = False
    assert rest[0, beyond] == pytest.approx(mesh[0, beyond], abs=1e-9)


def test_all_nodes_count_if_the_view_nearly_fills_the_frame() -> None:
    ones = np.ones((SIZE[1], SIZE[0]), bool)
    nearly = np.hypot(COLUMNS - 48, (ROWS - 40) * 1.2) < 46
    assert affine_of(nearly) == pytest.approx(affine_of(ones))
    along = np.linspace(-1, 1, NODES)
    x, y = (axis.ravel() for axis in np.meshgrid(along, along))
    wanted = np.kron(np.stack([np.ones(len(x)), x, y]), np.eye(2))
    assert np.linalg.matrix_rank(np.vstack([wanted, affine_of(ones)])) == 6


def test_the_spread_equals_that_of_numpy() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 2, 401, 1400):
        lack = rng.normal(size=(40, 50)).astype(np.float32)
        both = np.zeros(2000, bool)
        both[rng.permutation(2000)[:count]] = True
        both = both.reshape(40, 50)
        some = lack[both]
        wanted = max(1.4826 * float(np.median(np.abs(some - np.median(some)))), 1e-3)
        assert spread_of(lack, both) == pytest.approx(wanted, rel=1e-6)


def test_sums_over_cells_equal_the_total() -> None:
    values = np.random.default_rng(2).random((90, 70))
    sums = cell_sums_matrix(90) @ values @ cell_sums_matrix(70).T
    assert sums.shape == (NODES - 1, NODES - 1)
    assert sums.sum() == pytest.approx(values.sum(), rel=0.02)
