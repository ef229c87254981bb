"""Joint adjustment: exact links give back the truth, skips limit drift, outliers do not pull."""

from __future__ import annotations

import numpy as np
import pytest

from ml.geometry import transform_points
from ml.mosaic.alignment.components import compose_along_paths, connected_components
from ml.mosaic.alignment.optimisation import adjust_transforms, link_residuals
from ml.mosaic.registration.links import Link, point_info

MASK = np.ones((200, 200), np.bool_)
CORNERS = np.array([[0, 0], [199, 0], [199, 199], [0, 199.0]])


def _truth(n: int) -> dict[int, np.ndarray]:
    rows = {}
    for i in range(n):
        c, s = np.cos(0.02 * i), np.sin(0.02 * i)
        rows[i] = np.array([[c, -s, 9.0 * i], [s, c, 4.0 * i], [0, 0, 1.0]])
    return rows


def _link(a: int, b: int, truth: dict[int, np.ndarray], noise: float, seed: int) -> Link:
    rng = np.random.default_rng(seed)
    exact = np.linalg.solve(truth[b], truth[a])
    xy_a = rng.uniform(20, 180, (40, 2))
    xy_b = transform_points(exact, xy_a) + rng.normal(0, noise, (40, 2))
    measured = exact.copy()
    measured[:2, 2] += rng.normal(0, 2 * noise, 2)
    return Link(
        a,
        b,
        xy_a.astype("f4"),
        xy_b.astype("f4"),
        measured,
        40,
        np.zeros(3, np.float32),
        point_info(40),
    )


def _links(truth: dict[int, np.ndarray], skips: tuple[int, ...], noise: float) -> tuple[Link, ...]:
    return tuple(
        _link(i, i - skip, truth, noise, 100 * i + skip)
        for i in truth
        for skip in skips
        if i - skip in truth
    )


def _error(placed: dict[int, np.ndarray], truth: dict[int, np.ndarray], anchor: int) -> float:
    return float(
        np.mean(
            [
                np.abs(
                    transform_points(placed[f], CORNERS)
                    - transform_points(np.linalg.solve(truth[anchor], truth[f]), CORNERS)
                ).mean()
                for f in truth
            ]
        )
    )


@pytest.mark.parametrize("model", ["similarity", "affine", "homography"])
def test_exact_links_recover_the_truth(model: str) -> None:
    truth = _truth(10)
    links = _links(truth, (1, 2), 0.0)
    start = {f: np.eye(3) for f in truth} | {
        f: np.array([[1, 0, 9.0 * (f - 5)], [0, 1, 0], [0, 0, 1]]) for f in truth
    }
    placed = adjust_transforms(start, links, 5, model=model, mask=MASK).transforms
    np.testing.assert_allclose(placed[5], np.eye(3), atol=1e-5)
    assert _error(placed, truth, 5) < 0.01


def test_a_tilted_anchor_does_not_tilt_the_map() -> None:
    truth = _truth(16)
    tilt = np.array([[1, 0, 0], [0, 1, 0], [2e-4, -1e-4, 1.0]])
    centre = np.array([[1, 0, 99.5], [0, 1, 99.5], [0, 0, 1.0]])
    truth[8] = truth[8] @ centre @ tilt @ np.linalg.inv(centre)
    links = _links(truth, (1, 2, 3), 0.0)
    start = compose_along_paths(links, 8)
    transforms = adjust_transforms(start, links, 8, model="homography", mask=MASK)
    flat = {
        f: np.linalg.solve(transforms.transforms[8], m) for f, m in transforms.transforms.items()
    }
    assert _error(flat, truth, 8) < 0.05
    tilts = np.array([transforms.transforms[f][2, :2] for f in truth if f != 8])
    assert np.abs(tilts).max() < 3e-5
    middle = np.array([[99.5, 99.5]])
    np.testing.assert_allclose(
        transform_points(transforms.transforms[8], middle), middle, atol=1e-6
    )


def test_the_anchor_is_certain_and_distant_frames_less() -> None:
    truth = _truth(12)
    links = _links(truth, (1, 2), 0.5)
    for model in ("similarity", "homography"):
        transforms = adjust_transforms(
            compose_along_paths(links, 6), links, 6, model=model, mask=MASK
        )
        np.testing.assert_array_equal(transforms.covariance[6][:4, :4], 0)
        spread = [float(np.trace(transforms.covariance[f][2:4, 2:4])) for f in (7, 9, 11)]
        assert 0 < spread[0] < spread[1] < spread[2]


def test_skip_links_drift_less_than_only_neighbours() -> None:
    truth = _truth(40)
    composed = compose_along_paths(_links(truth, (1,), 0.7), 20)
    links = _links(truth, (1, 2, 5, 8), 0.7)
    transforms = adjust_transforms(
        compose_along_paths(links, 20), links, 20, model="affine", mask=MASK
    )
    joint = transforms.transforms
    assert _error(joint, truth, 20) < 0.4 * _error(composed, truth, 20)


def test_a_wrong_link_has_little_influence() -> None:
    truth = _truth(12)
    links = _links(truth, (1, 2, 3), 0.2)
    wrong = _link(11, 0, {**truth, 0: truth[0] + [[0, 0, 60], [0, 0, 0], [0, 0, 0]]}, 0.2, 1)
    placed = adjust_transforms(
        compose_along_paths(links, 6), (*links, wrong), 6, model="affine", mask=MASK
    ).transforms
    assert _error(placed, truth, 6) < 0.5
    assert np.median(link_residuals(wrong, placed)) > 40


def test_transforms_are_composed_in_both_directions_from_the_anchor() -> None:
    truth = _truth(6)
    placed = compose_along_paths(_links(truth, (1,), 0.0), 3)
    assert _error(placed, truth, 3) < 1e-6


def test_the_largest_connected_set_is_the_main_component() -> None:
    truth = _truth(9)
    links = tuple(link for link in _links(truth, (1,), 0.0) if (link.a, link.b) != (4, 3))
    assert connected_components(links, list(truth)) == [{4, 5, 6, 7, 8}, {0, 1, 2, 3}]
    assert connected_components((), [3, 1]) == [{1}, {3}]
    assert connected_components((), []) == []
