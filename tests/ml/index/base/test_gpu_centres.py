"""Lists made on a GPU, which the processor stands in for: as good, and the processor takes over."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from ml.gpu import MEMORY_VARIABLE
from ml.index import IndexConfig, open_index
from ml.index.base import gpu_centres
from ml.index.base.gpu_centres import centres_on_gpu
from tests.ml.index.base.test_gpu import clustered, recall
from tests.ml.index.conftest import faiss_with_gpu, lists_for_few

DIM, COUNT = 24, 6_000
FULL = "Error in virtual void* StandardGpuResourcesImpl::allocMemory: out of memory"


@pytest.fixture(scope="module")
def vectors():
    return clustered(COUNT, DIM)


def nearest_of(centres, vectors):
    flat = faiss.IndexFlatL2(DIM)
    flat.add(centres)
    squared, at = flat.search(vectors, 1)
    return squared[:, 0], at[:, 0]


def test_centres_lie_as_close_as_the_processors_and_each_vector_gets_its_nearest(
    vectors, monkeypatch
):
    made_there = faiss_with_gpu(monkeypatch)
    made = centres_on_gpu(vectors, 300)
    assert made_there == [DIM] and made.centres.shape == (300, DIM)
    whole = faiss.Kmeans(DIM, 300, niter=10, seed=1, min_points_per_centroid=1)
    whole.train(vectors)
    ours, theirs = (nearest_of(one, vectors)[0].mean() for one in (made.centres, whole.centroids))
    assert ours < 1.05 * theirs
    assert np.array_equal(made.nearest(vectors), nearest_of(made.centres, vectors)[1])


def test_a_large_base_is_built_there_and_found_in_as_ever(vectors, monkeypatch, tmp_path):
    lists_for_few(monkeypatch, recall=0.998)
    plain = open_index(tmp_path / "plain", dim=DIM)
    plain.build(np.arange(COUNT), vectors)
    lists_for_few(monkeypatch, recall=0.998, by_gpu=True)
    used = faiss_with_gpu(monkeypatch)
    built = open_index(tmp_path / "built", dim=DIM)
    built.build(np.arange(COUNT), vectors)
    assert used == [DIM], "one index there, of the centres"
    monkeypatch.undo()
    for name in ("plain", "built"):
        reader = open_index(tmp_path / name, dim=DIM)
        assert reader.stats.kind == "ivf"
        assert recall(reader, vectors) >= 0.99, name


def test_small_bases_and_those_asked_for_on_the_processor_stay_there(
    vectors, monkeypatch, tmp_path
):
    used = faiss_with_gpu(monkeypatch)
    for name, environment, config in (
        ("small", {}, IndexConfig(ivf_above=1_000, gpu_above=COUNT)),
        ("asked", {"TESSERA_DEVICE": "cpu"}, IndexConfig(ivf_above=1_000, gpu_above=0)),
        ("bound", {MEMORY_VARIABLE: "0.1"}, IndexConfig(ivf_above=1_000, gpu_above=0)),
    ):
        with monkeypatch.context() as patch:
            for key, value in environment.items():
                patch.setenv(key, value)
            index = open_index(tmp_path / name, dim=DIM, config=config)
            index.build(np.arange(COUNT), vectors)
            assert index.stats.kind == "ivf"
    assert used == []


def test_batches_that_do_not_fit_are_halved(vectors, monkeypatch):
    asked = []

    class Tight(faiss.IndexFlatL2):
        def search(self, some, k):
            asked.append(len(some))
            if len(some) > 2_000:
                raise RuntimeError(FULL)
            return super().search(some, k)

    faiss_with_gpu(monkeypatch, Tight)
    monkeypatch.setattr(gpu_centres, "_BATCH", 5_000)
    made = centres_on_gpu(vectors, 50)
    assert np.array_equal(made.nearest(vectors), nearest_of(made.centres, vectors)[1])
    assert asked[:3] == [5_000, 2_500, 1_250] and max(asked[2:]) == 1_250


def test_where_the_gpu_fails_the_processor_goes_on_and_says_so(vectors, monkeypatch, caplog):
    class Broken(faiss.IndexFlatL2):
        def search(self, some, k):
            raise RuntimeError(FULL)

    faiss_with_gpu(monkeypatch, Broken)
    made = centres_on_gpu(vectors, 50)
    assert (made.nearest(vectors) == nearest_of(made.centres, vectors)[1]).mean() > 0.99
    assert "the processor takes over" in caplog.text

    class Full(faiss.IndexFlatL2):
        def add(self, some):
            raise RuntimeError(FULL)

    faiss_with_gpu(monkeypatch, Full)
    assert centres_on_gpu(vectors, 50) is None
    assert "cannot compute 50 centres" in caplog.text
