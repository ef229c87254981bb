"""The shipped encoder with a graph part, compared with the default without one."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from ml.files import WEIGHTS_FOLDER
from ml.index.ranking.calibration import calibration_of
from ml.roi import load_encoder
from ml.roi.graph import build_graph
from ml.roi.load import load_graph_encoder
from ml.training.roi.arrangement.views import rearranged_graph

VERTEX_DIM = 80


def tissue(side: int = 1000):
    """Coarse grain on the left, fine grain on the right, in shades of a stain."""
    rng = np.random.default_rng(0)
    coarse = np.kron(rng.integers(90, 220, (side // 20, side // 20)), np.ones((20, 20)))
    fine = np.kron(rng.integers(90, 220, (side // 4, side // 4)), np.ones((4, 4)))
    grey = np.where(np.arange(side) < side / 2, coarse, fine)
    return np.stack([grey * 0.8, grey * 0.5, grey * 0.9], axis=2).astype(np.uint8)


@pytest.fixture(scope="module")
def graph():
    return load_graph_encoder("graph").image_graph((tissue(), None, 1.0))


def test_the_graph_encoder_is_small_and_loaded_by_name():
    encoder, default = load_encoder("graph"), load_encoder("default")
    assert (encoder.name, encoder.kind) == ("roi-graph", default.kind)
    assert encoder.config_hash != default.config_hash
    assert (WEIGHTS_FOLDER / "roi-graph.safetensors").stat().st_size < 30e6


def test_distances_of_the_graph_encoder_are_calibrated():
    calibration = calibration_of(load_encoder("graph").config_hash)
    assert calibration is not None and calibration.pairs > 1000


def test_the_first_part_of_the_vector_equals_the_default_encoder(graph):
    mean = load_graph_encoder("default").embed_graph(graph)
    embedding = load_graph_encoder("graph").embed_graph(graph)
    assert np.allclose(embedding[:VERTEX_DIM], mean, atol=1e-6)


def test_the_graph_encoder_depends_on_the_arrangement_and_the_mean_does_not(graph):
    other = rearranged_graph(graph, np.random.default_rng(0), grid=4, edge_px=448.0)
    default, encoder = load_graph_encoder("default"), load_graph_encoder("graph")
    assert np.allclose(default.embed_graph(graph), default.embed_graph(other), atol=1e-6)
    assert np.linalg.norm(encoder.embed_graph(graph) - encoder.embed_graph(other)) > 0.01


def test_the_order_of_the_vertices_does_not_matter(graph):
    order = np.random.default_rng(0).permutation(len(graph))
    other = build_graph(graph.x[order], graph.pos[order].astype(np.float64))
    encoder = load_graph_encoder("graph")
    assert np.allclose(encoder.embed_graph(graph), encoder.embed_graph(other), atol=1e-5)


def test_the_same_region_gives_the_same_bits():
    encoder = load_encoder("graph")
    first, second = (encoder.embed(tissue(), mpp=1.0) for _ in range(2))
    assert hashlib.sha256(first.tobytes()).digest() == hashlib.sha256(second.tobytes()).digest()


def test_contributions_of_patches_sum_to_the_vector(graph):
    encoder = load_graph_encoder("graph")
    with torch.inference_mode():
        parts = encoder.network.parts(torch.from_numpy(graph.x), torch.from_numpy(graph.edge_index))
    assert np.allclose(parts.mean(dim=0).numpy(), encoder.embed_graph(graph), atol=1e-5)
