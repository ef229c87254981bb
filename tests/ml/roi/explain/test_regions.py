"""Explanation of two synthetic regions with half of their tissue in common."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from shapely.geometry import box

from ml.imaging.slides.slide import open_slide
from ml.networks.gcn import GcnConfig, RoiGcn
from ml.roi import load_encoder
from ml.roi.explain.colour import colour_histogram, colour_overlap
from ml.roi.explain.regions import PlacedRegion, explain_regions, stain_counterpart

SIDE = 900  # half of it is two patches of 224 um wide at 1 um per pixel


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("default")


@pytest.fixture(scope="module")
def halves(tissue):
    """Two images: the left of the first and the right of the second have the same tissue."""
    shared = [tissue(SIDE, SIDE, seed=seed, nuclei_per_mpx=2500) for seed in (1, 2)]
    few = tissue(SIDE, SIDE, seed=3, nuclei_per_mpx=60, radius_px=3)
    large = tissue(SIDE, SIDE, seed=4, nuclei_per_mpx=250, radius_px=22)
    return np.hstack([shared[0], few]), np.hstack([large, shared[1]])


@pytest.fixture(scope="module")
def explained(encoder, halves):
    return explain_regions(encoder, *(PlacedRegion(image, mpp=1.0) for image in halves))


def test_matched_patches_are_in_the_common_half(explained):
    result, a, b = explained
    middle_a = a.boxes_l0[:, [0, 2]].mean(axis=1)
    middle_b = b.boxes_l0[:, [0, 2]].mean(axis=1)
    assert len(result.pairs) >= 4
    for pair in result.pairs:
        assert middle_a[pair.a] < SIDE and middle_b[pair.b] > SIDE
    assert (
        result.contributions_a[middle_a < SIDE].sum()
        > result.contributions_a[middle_a > SIDE].sum()
    )


@pytest.mark.slow
def test_the_mean_of_the_rows_is_the_vector(encoder, halves, explained):
    result, a, _ = explained
    vectors = [encoder.embed(image, mpp=1.0) for image in halves]
    assert a.vector == pytest.approx(vectors[0], abs=1e-5)
    assert result.similarity == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-4)
    assert result.distance == pytest.approx(
        float(np.linalg.norm(vectors[0] - vectors[1])), abs=1e-4
    )


@pytest.mark.slow
def test_a_slide_and_its_pixels_give_equal_rows(encoder, halves, tmp_path):
    path = tmp_path / "still.png"
    Image.fromarray(halves[0][:, :SIDE]).save(path)
    outline = box(100, 100, 800, 800)
    of_image = PlacedRegion(halves[0][:, :SIDE], outline, 1.0)
    with open_slide(path) as slide:
        result, a, b = explain_regions(encoder, PlacedRegion(slide, outline, 1.0), of_image)
    assert np.array_equal(a.boxes_l0, b.boxes_l0)
    assert result.similarity == pytest.approx(1, abs=0.01)


def test_the_counterpart_toggles_stain_normalisation(encoder):
    other = stain_counterpart(encoder)
    assert other.normalises and not encoder.normalises
    assert not stain_counterpart(other).normalises


def test_colour_overlap_is_independent_of_tissue(halves):
    pink = halves[0][:, :SIDE]
    blue = pink[:, :, ::-1].copy()
    same, other = colour_histogram([pink]), colour_histogram([blue])
    assert same.sum() == pytest.approx(1)
    assert colour_overlap(same, same) == pytest.approx(1)
    assert colour_overlap(same, other) < 0.2
    assert not colour_histogram([np.full((64, 64, 3), 250, np.uint8)]).any()


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_the_mean_of_the_rows_of_a_graph_encoder_is_its_vector(power):
    config = GcnConfig(in_dim=12, vertex_dim=6, hidden_dim=8, out_dim=4, power=power)
    torch.manual_seed(0)
    network = RoiGcn(config).eval()
    x, edges = torch.randn(7, 12), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    with torch.inference_mode():
        vector = network(x, edges, torch.zeros(7, dtype=torch.int64))[0]
        assert torch.allclose(network.parts(x, edges).mean(dim=0), vector, atol=1e-5)
