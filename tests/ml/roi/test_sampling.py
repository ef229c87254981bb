"""Positions of patches: overlap with the region, image bounds and vertex budget."""

from __future__ import annotations

import numpy as np
import pytest
from shapely.geometry import MultiPolygon, Point, Polygon, box

from ml.errors import BadInputError
from ml.roi.sampling import SamplingConfig, implied_density, sample_patches

PATCH = 224


def sample(region, *, size=(10000, 10000), downsample=2.0, **settings):
    config = SamplingConfig(**settings)
    return sample_patches(
        region, downsample=downsample, width_l0=size[0], height_l0=size[1], config=config
    )


def test_every_patch_is_more_than_half_inside_the_region():
    region = Point(5000, 5000).buffer(2000)
    scaled = Point(2500, 2500).buffer(1000)
    points = sample(region)
    assert len(points) > 40
    for x, y in points.centre_px:
        patch = box(x - PATCH / 2, y - PATCH / 2, x + PATCH / 2, y + PATCH / 2)
        assert patch.intersection(scaled).area > 0.49 * patch.area  # outline simplified by 1 px


def test_sampling_is_deterministic_for_a_seed():
    region = box(1000, 1000, 4000, 4000)
    assert np.array_equal(sample(region).centre_px, sample(region).centre_px)
    assert not np.array_equal(sample(region).centre_px, sample(region, seed=1).centre_px)


def test_patches_are_inside_the_image():
    points = sample(box(0, 0, 3000, 2000), size=(3000, 2000))
    assert points.centre_px.min() >= PATCH / 2
    assert points.centre_px[:, 0].max() <= 1500 - PATCH / 2
    assert points.centre_px[:, 1].max() <= 1000 - PATCH / 2


def test_a_region_smaller_than_a_patch_has_a_single_vertex():
    points = sample(box(4000, 4000, 4060, 4040))
    assert len(points) == 1
    assert box(2000, 2000, 2030, 2020).covers(Point(points.centre_px[0]))


def test_a_strip_thinner_than_half_a_patch_is_covered():
    points = sample(box(1000, 5000, 9000, 5100))
    assert len(points) >= 5
    assert np.ptp(points.centre_px[:, 0]) > 2000


def test_the_vertex_budget_limits_large_regions_and_lowers_the_density():
    huge = sample(box(0, 0, 40000, 40000), size=(40000, 40000))
    small = sample(box(0, 0, 4000, 4000), size=(40000, 40000))
    assert 200 <= len(huge) <= SamplingConfig().max_vertices
    assert huge.density < 0.1 * small.density
    assert np.ptp(huge.centre_px, axis=0).min() > 15000


def test_a_polygon_of_200000_vertices_is_sampled():
    angle = np.linspace(0, 2 * np.pi, 200_000, endpoint=False)
    radius = 2000 + 20 * np.sin(400 * angle)
    region = Polygon(np.c_[5000 + radius * np.cos(angle), 5000 + radius * np.sin(angle)])
    assert len(sample(region)) > 40


def test_points_are_more_even_than_random_ones():
    centres = sample(box(0, 0, 20000, 20000), size=(20000, 20000)).centre_px
    cells = np.histogram2d(*centres.T, bins=6, range=[[0, 10000], [0, 10000]])[0]
    assert cells.var() < 0.5 * cells.mean()  # Poisson has variance = mean


def test_a_downsample_of_zero_raises_an_error():
    with pytest.raises(BadInputError, match="more than 0"):
        sample(box(0, 0, 10, 10), downsample=0)


def test_a_billion_pixels_have_the_documented_density():
    assert implied_density(1e9, SamplingConfig()) == pytest.approx(0.0128, abs=1e-4)
    assert implied_density(85 * PATCH**2, SamplingConfig()) == pytest.approx(3.0, abs=0.02)
    assert implied_density(PATCH**2, SamplingConfig()) == 8.0


def test_a_grid_has_the_density_of_sobol_points():
    region = box(1000, 1000, 9000, 9000)
    grid, sobol = (sample(region, pattern=p) for p in ("grid", "sobol"))
    assert len(grid) == pytest.approx(len(sobol), rel=0.15)
    steps = np.diff(np.unique(grid.centre_px[:, 0]))
    assert steps.size > 8 and np.ptp(steps) < 1e-3 + 1
    assert np.array_equal(grid.centre_px, sample(region, pattern="grid", seed=5).centre_px)


@pytest.mark.parametrize("pattern", ["sobol", "grid"])
def test_both_patterns_respect_the_budget_and_the_region(pattern):
    ring = Point(20000, 20000).buffer(19000) - Point(20000, 20000).buffer(12000)
    points = sample(ring, size=(40000, 40000), pattern=pattern)
    assert 100 < len(points) <= SamplingConfig().max_vertices
    distance = np.hypot(*(points.centre_px - 10000).T)
    assert distance.min() > 5900 and distance.max() < 9600


def test_a_tiny_region_has_one_vertex_with_either_pattern():
    for pattern in ("sobol", "grid"):
        assert len(sample(box(4000, 4000, 4001, 4001), pattern=pattern)) == 1


def test_every_part_of_a_multipolygon_has_a_vertex():
    parts = [box(x, y, x + 60, y + 60) for x, y in ((100, 100), (9000, 200), (300, 9500))]
    for region in (MultiPolygon(parts), MultiPolygon([*parts, box(3000, 3000, 6000, 6000)])):
        points = sample(region)
        half = PATCH / 2
        patches = [box(x - half, y - half, x + half, y + half) for x, y in points.centre_px]
        for part in parts:
            inner = box(*(b / 2 for b in part.bounds))
            assert any(patch.intersects(inner) for patch in patches)


def test_an_unknown_pattern_raises_an_error():
    with pytest.raises(BadInputError, match="'spiral'"):
        sample(box(0, 0, 10, 10), pattern="spiral")
