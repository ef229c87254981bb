"""Rows that a GPU proposes hold the nearest ones, or there are none."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from ml.errors import BadInputError
from ml.gpu import MEMORY_VARIABLE, VARIABLE
from ml.index import IndexConfig, open_index
from ml.index.base.gpu import MOST_ROWS, GpuRows, rows_on_gpu
from ml.index.exact import exact_distances, nearest
from tests.ml.index.conftest import RoughIndex, faiss_with_gpu

RNG = np.random.default_rng(5)


def nearest_rows(vectors, q, k, mask=None):
    rows = np.arange(len(vectors)) if mask is None else np.flatnonzero(mask)
    return nearest(rows, exact_distances(q, vectors[rows]), k)[0]


def clustered(count, dim):
    rng = np.random.default_rng(3)
    centres = 3 * rng.standard_normal((60, dim))
    return (centres[rng.integers(0, 60, count)] + rng.standard_normal((count, dim))).astype("f4")


def recall(index, vectors, k=25):
    """Mean share of the exact answer that an index of all ``vectors`` finds."""
    shares = []
    for q in vectors[:: len(vectors) // 20] + np.float32(0.05):
        shares.append(np.isin(nearest_rows(vectors, q, k), index.search(q, k)[0]).mean())
    return np.mean(shares)


@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("share", [None, 0.5, 0.06])
def test_the_nearest_permitted_rows_are_among_the_proposed(offset, share):
    """Far from the origin float32 mistakes the order; then more rows are fetched, or none."""
    vectors = (RNG.standard_normal((4000, 32)) + offset).astype(np.float32)
    mask = None if share is None else RNG.random(4000) < share
    gpu = GpuRows(RoughIndex(vectors), vectors)
    answered = 0
    for q in vectors[:20] + np.float32(0.1):
        rows = gpu.proposed(q, 10, mask)
        if rows is None:
            continue
        answered += 1
        found = nearest(rows, exact_distances(q, vectors[rows]), 10)[0]
        assert found.tolist() == nearest_rows(vectors, q, 10, mask).tolist()
    assert answered == 20


def test_more_equals_than_a_gpu_selects_are_left_to_the_processor():
    vectors = np.ones((MOST_ROWS + 500, 8), np.float32)
    gpu = GpuRows(RoughIndex(vectors), vectors)
    assert gpu.proposed(np.zeros(8, np.float32), 5, None) is None


def test_what_is_permitted_far_away_is_left_to_the_processor():
    """Half of the rows are permitted, but none of the nearest 2,048 is."""
    vectors = np.sort(RNG.random((5000, 1)), axis=0).astype(np.float32)
    mask = np.arange(5000) >= 2500
    index = RoughIndex(vectors)
    assert GpuRows(index, vectors).proposed(np.zeros(1, np.float32), 3, mask) is None
    assert index.searches == 4, "41 rows, then four times as many until 2,048"


def test_all_rows_are_enough_however_rough():
    vectors = np.ones((300, 8), np.float32)
    rows = GpuRows(RoughIndex(vectors), vectors).proposed(np.zeros(8, np.float32), 290, None)
    assert sorted(rows.tolist()) == list(range(300))


def test_without_a_gpu_the_processor_searches(tmp_path, monkeypatch):
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    monkeypatch.setenv(VARIABLE, "cuda")
    assert rows_on_gpu(np.ones((3, 2), np.float32)) is None, "the build for processors knows none"
    index = open_index(tmp_path / "i", dim=2, config=IndexConfig(gpu_above=0))
    index.build([1], [[0.0, 1.0]])
    assert index.search([0.0, 0.0], 1)[0].tolist() == [1]


def test_a_processor_that_is_asked_for_and_a_bound_keep_vectors_off_the_gpu(monkeypatch):
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setenv(VARIABLE, "cpu")
    assert rows_on_gpu(np.ones((3, 2), np.float32)) is None
    monkeypatch.setenv(VARIABLE, "cuda:1")
    with pytest.raises(BadInputError, match="1 usable"):
        rows_on_gpu(np.ones((3, 2), np.float32))
    monkeypatch.setenv(VARIABLE, "auto")
    monkeypatch.setenv(MEMORY_VARIABLE, "0.1")
    assert rows_on_gpu(np.ones((3, 2), np.float32)) is None


def test_a_gpu_without_room_is_said_and_passed_over(monkeypatch, caplog):
    class Full:
        def setTempMemory(self, _bytes: int) -> None:
            raise RuntimeError("Error: 'err == cudaSuccess' failed: out of memory")

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "StandardGpuResources", Full, raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert rows_on_gpu(np.ones((3, 2), np.float32)) is None
    assert "the GPU has not enough memory" in caplog.text


def test_vectors_that_a_gpu_cannot_take_are_left_to_the_processor(monkeypatch, caplog):
    class Small(faiss.IndexFlatL2):
        def add(self, _vectors):
            raise RuntimeError("Error: 'err == cudaSuccess' failed: out of memory")

    faiss_with_gpu(monkeypatch, Small)
    assert rows_on_gpu(np.ones((3, 2), np.float32)) is None
    assert "cannot hold 3 vectors" in caplog.text


@pytest.mark.gpu
@pytest.mark.skipif(not faiss.get_num_gpus(), reason="no GPU, or FAISS without it")
def test_lists_made_on_a_real_gpu_find_what_the_processor_finds(tmp_path):
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
def test_a_real_gpu_agrees_with_the_processor(tmp_path):
    vectors = RNG.standard_normal((50_000, 128)).astype(np.float32)
    gpu = open_index(tmp_path / "i", dim=128, config=IndexConfig(gpu_above=0))
    gpu.build(np.arange(50_000), vectors)
    for q in vectors[:20] + np.float32(0.1):
        for allowed in (None, np.arange(0, 50_000, 3)):
            found = gpu.search(q, 25, allowed=allowed)[0]
            mask = None if allowed is None else np.isin(np.arange(50_000), allowed)
            assert found.tolist() == nearest_rows(vectors, q, 25, mask).tolist()
