"""Priors on meshes."""

from __future__ import annotations

import numpy as np
import pytest

from ml.geometry import transform_points
from ml.mosaic.local_mesh.cells import NODES
from ml.mosaic.local_mesh.prior import MIN_MOTION_SHARE, PARALLAX_SHARE, node_places, prior

SIZE = (161, 121)
SIDE = 161.0
STEP = 20.0
"""px from one keyframe to the next: as far as nodes lie apart across."""


def _beside(*at: float) -> np.ndarray:
    return np.array([[[1, 0, x], [0, 1, 0], [0, 0, 1.0]] for x in at])


def _cost(meshes: np.ndarray, matrices: np.ndarray) -> float:
    """Cost of the prior of all meshes beyond that of each mesh."""
    row = meshes.ravel()
    separate = sum(
        mesh.ravel() @ (prior(matrices[:1], SIZE, SIDE) @ mesh.ravel()) for mesh in meshes
    )
    return float(row @ (prior(matrices, SIZE, SIDE) @ row) - separate)


def test_equal_displacements_of_the_same_tissue_have_no_cost() -> None:
    tissue = np.random.default_rng(0).normal(size=(NODES, NODES + 1, 2))
    meshes = np.stack([tissue[:, :NODES], tissue[:, 1:]])
    assert _cost(meshes, _beside(0, STEP)) == pytest.approx(0, abs=1e-3)
    assert _cost(meshes, _beside(0, -STEP)) > 20


def test_displacements_may_differ_by_the_parallax_of_the_motion() -> None:
    meshes = np.zeros((2, NODES, NODES, 2))
    meshes[1, :, :, 1] = PARALLAX_SHARE * STEP
    shared = NODES * (NODES - 1)
    assert _cost(meshes, _beside(0, STEP)) == pytest.approx(shared, rel=1e-3)
    assert _cost(meshes, _beside(0, 2 * STEP)) == pytest.approx((shared - NODES) / 4, rel=1e-3)


def test_displacements_are_compared_in_px_of_the_earlier_keyframe() -> None:
    turned = np.stack([np.eye(3), [[0, -1, 140.0], [1, 0, -20], [0, 0, 1]]])
    nodes = node_places(SIZE)
    there = transform_points(np.linalg.inv(turned[1]), nodes)
    assert ((there >= 0) & (there < SIZE)).all(axis=1).sum() > 12
    meshes = np.zeros((2, NODES, NODES, 2))
    meshes[0, :, :], meshes[1, :, :] = (3.0, 0.0), (0.0, -3.0)
    assert _cost(meshes, turned) == pytest.approx(0, abs=1e-3)
    assert _cost(-meshes[::-1], turned) > 1


def test_keyframes_without_overlap_do_not_constrain_each_other() -> None:
    meshes = np.random.default_rng(1).normal(size=(2, NODES, NODES, 2))
    assert _cost(meshes, _beside(0, 300)) == pytest.approx(0, abs=1e-6)
    assert _cost(meshes[:1], _beside(0)) == pytest.approx(0, abs=1e-6)


def test_distances_are_relative_to_the_view_and_not_to_the_frame() -> None:
    meshes = np.zeros((2, NODES, NODES, 2))
    meshes[1, :, :, 1] = 1.0
    still = _beside(0, 0)
    full_view, half = (
        sum(
            sign * float(row @ (prior(matrices, SIZE, side) @ row))
            for sign, row, matrices in (
                (1, meshes.ravel(), still),
                (-1, meshes[1].ravel(), still[:1]),
            )
        )
        for side in (SIDE, SIDE / 2)
    )
    assert full_view == pytest.approx(
        (NODES / (PARALLAX_SHARE * MIN_MOTION_SHARE * SIDE)) ** 2, 1e-3
    )
    assert half == pytest.approx(4 * full_view, rel=1e-3)
