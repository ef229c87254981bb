"""Candidates of a GPU include the nearest rows, or there are none."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.gpu import MEMORY_VARIABLE, VARIABLE
from ml.index import open_index
from ml.index.exact import exact_distances, nearest
from ml.index.files.engine import IndexConfig
from ml.index.files.segments.gpu_vectors import MAX_ROWS, GpuVectors, vectors_on_gpu
from tests.ml.index.conftest import RoughIndex, faiss_with_gpu

RNG = np.random.default_rng(5)


def nearest_rows(vectors, q, k, mask=None):
    rows = np.arange(len(vectors)) if mask is None else np.flatnonzero(mask)
    return nearest(rows, exact_distances(q, vectors[rows]), k)[0]


def clustered(count, dim):
    rng = np.random.default_rng(3)
    centroids = 3 * rng.standard_normal((60, dim))
    return (centroids[rng.integers(0, 60, count)] + rng.standard_normal((count, dim))).astype("f4")


def recall(index, vectors, k=25):
    """Mean recall of an index of all ``vectors``."""
    shares = []
    for q in vectors[:: len(vectors) // 20] + np.float32(0.05):
        shares.append(np.isin(nearest_rows(vectors, q, k), index.search(q, k)[0]).mean())
    return np.mean(shares)


@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("share", [None, 0.5, 0.06])
def test_candidates_include_the_nearest_permitted_rows(offset, share):
    """Far from the origin, float32 distances have another order, so more rows are fetched."""
    vectors = (RNG.standard_normal((4000, 32)) + offset).astype(np.float32)
    mask = None if share is None else RNG.random(4000) < share
    gpu = GpuVectors(RoughIndex(vectors), vectors)
    answered = 0
    for q in vectors[:20] + np.float32(0.1):
        rows = gpu.candidates(q, 10, mask)
        if rows is None:
            continue
        answered += 1
        ids = nearest(rows, exact_distances(q, vectors[rows]), 10)[0]
        assert ids.tolist() == nearest_rows(vectors, q, 10, mask).tolist()
    assert answered == 20


def test_more_ties_than_a_gpu_returns_give_no_candidates():
    vectors = np.ones((MAX_ROWS + 500, 8), np.float32)
    gpu = GpuVectors(RoughIndex(vectors), vectors)
    assert gpu.candidates(np.zeros(8, np.float32), 5, None) is None


def test_permitted_rows_far_from_the_query_give_no_candidates():
    """Half of the rows are permitted, but none of the nearest 2,048."""
    vectors = np.sort(RNG.random((5000, 1)), axis=0).astype(np.float32)
    mask = np.arange(5000) >= 2500
    index = RoughIndex(vectors)
    assert GpuVectors(index, vectors).candidates(np.zeros(1, np.float32), 3, mask) is None
    assert index.searches == 4, "41 rows, then four times as many until 2,048"


def test_all_rows_are_sufficient_candidates():
    vectors = np.ones((300, 8), np.float32)
    rows = GpuVectors(RoughIndex(vectors), vectors).candidates(np.zeros(8, np.float32), 290, None)
    assert sorted(rows.tolist()) == list(range(300))


def test_without_a_gpu_the_cpu_searches(tmp_path, monkeypatch):
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    monkeypatch.setenv(VARIABLE, "cuda")
    assert vectors_on_gpu(np.ones((3, 2), np.float32)) is None, (
        "the build for processors knows none"
    )
    index = open_index(tmp_path / "i", dim=2, config=IndexConfig(gpu_above=0))
    index.build([1], [[0.0, 1.0]])
    assert index.search([0.0, 0.0], 1)[0].tolist() == [1]


def test_the_device_setting_and_the_memory_bound_avoid_the_gpu(monkeypatch):
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setenv(VARIABLE, "cpu")
    assert vectors_on_gpu(np.ones((3, 2), np.float32)) is None
    monkeypatch.setenv(VARIABLE, "cuda:1")
    with pytest.raises(BadInputError, match="1 usable"):
        vectors_on_gpu(np.ones((3, 2), np.float32))
    monkeypatch.setenv(VARIABLE, "auto")
    monkeypatch.setenv(MEMORY_VARIABLE, "0.1")
    assert vectors_on_gpu(np.ones((3, 2), np.float32)) is None


def test_a_gpu_without_memory_is_logged_and_not_used(monkeypatch, caplog):
    class Full:
        def setTempMemory(self, _bytes: int) -> None:
            raise RuntimeError("Error: 'err == cudaSuccess' failed: out of memory")

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "StandardGpuResources", Full, raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert vectors_on_gpu(np.ones((3, 2), np.float32)) is None
    assert "the GPU has not enough memory" in caplog.text


def test_vectors_that_do_not_fit_on_the_gpu_are_searched_on_the_cpu(monkeypatch, caplog):
    class Small(faiss.IndexFlatL2):
        def add(self, _vectors):
            raise RuntimeError("Error: 'err == cudaSuccess' failed: out of memory")

    faiss_with_gpu(monkeypatch, Small)
    assert vectors_on_gpu(np.ones((3, 2), np.float32)) is None
    assert "cannot hold 3 vectors" in caplog.text


@pytest.mark.gpu
@pytest.mark.skipif(not faiss.get_num_gpus(), reason="no GPU, or FAISS without it")
def test_lists_built_on_a_real_gpu_have_the_recall_of_the_cpu(tmp_path):
    vectors = clustered(60_000, 64)
    config = IndexConfig(gpu_above=0, ivf_above=0)
    large = open_index(tmp_path / "i", dim=64, config=config)
    large.build(np.arange(60_000), vectors)
    config = IndexConfig(gpu_above=10**9, ivf_above=0)  # searched by the lists themselves
    reader = open_index(tmp_path / "i", dim=64, config=config)
    assert reader.stats.kind == "ivf"
    assert recall(reader, vectors) >= 0.99


@pytest.mark.gpu
@pytest.mark.skipif(not faiss.get_num_gpus(), reason="no GPU, or FAISS without it")
def test_a_real_gpu_agrees_with_the_cpu(tmp_path):
    vectors = RNG.standard_normal((50_000, 128)).astype(np.float32)
    gpu = open_index(tmp_path / "i", dim=128, config=IndexConfig(gpu_above=0))
    gpu.build(np.arange(50_000), vectors)
    for q in vectors[:20] + np.float32(0.1):
        for allowed in (None, np.arange(0, 50_000, 3)):
            hits = gpu.search(q, 25, allowed=allowed)[0]
            mask = None if allowed is None else np.isin(np.arange(50_000), allowed)
            assert hits.tolist() == nearest_rows(vectors, q, 25, mask).tolist()
