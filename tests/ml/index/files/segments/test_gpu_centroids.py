"""Centroids fitted on a GPU, simulated by the CPU: as good, with a fallback to the CPU."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from ml.gpu import MEMORY_VARIABLE
from ml.index import open_index
from ml.index.files.engine import IndexConfig
from ml.index.files.segments import gpu_centroids
from ml.index.files.segments.gpu_centroids import fit_centroids_on_gpu
from tests.ml.index.conftest import faiss_with_gpu, lists_for_few
from tests.ml.index.files.segments.test_gpu_vectors import clustered, recall

DIM, COUNT = 24, 6_000
FULL = "Error in virtual void* StandardGpuResourcesImpl::allocMemory: out of memory"


@pytest.fixture(scope="module")
def vectors():
    return clustered(COUNT, DIM)


def nearest_of(centroids, vectors):
    flat = faiss.IndexFlatL2(DIM)
    flat.add(centroids)
    squared, at = flat.search(vectors, 1)
    return squared[:, 0], at[:, 0]


def test_gpu_centroids_are_as_good_as_those_of_the_cpu(vectors, monkeypatch):
    gpu_dims = faiss_with_gpu(monkeypatch)
    made = fit_centroids_on_gpu(vectors, 300)
    assert gpu_dims == [DIM] and made.centroids.shape == (300, DIM)
    reference = faiss.Kmeans(DIM, 300, niter=10, seed=1, min_points_per_centroid=1)
    reference.train(vectors)
    ours, theirs = (
        nearest_of(rows, vectors)[0].mean() for rows in (made.centroids, reference.centroids)
    )
    assert ours < 1.05 * theirs
    assert np.array_equal(made.nearest(vectors), nearest_of(made.centroids, vectors)[1])


def test_a_base_built_on_a_gpu_has_the_recall_of_one_built_on_the_cpu(
    vectors, monkeypatch, tmp_path
):
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


def test_small_bases_and_the_device_setting_avoid_the_gpu(vectors, monkeypatch, tmp_path):
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
    batch_sizes = []

    class Tight(faiss.IndexFlatL2):
        def search(self, some, k):
            batch_sizes.append(len(some))
            if len(some) > 2_000:
                raise RuntimeError(FULL)
            return super().search(some, k)

    faiss_with_gpu(monkeypatch, Tight)
    monkeypatch.setattr(gpu_centroids, "_BATCH", 5_000)
    made = fit_centroids_on_gpu(vectors, 50)
    assert np.array_equal(made.nearest(vectors), nearest_of(made.centroids, vectors)[1])
    assert batch_sizes[:3] == [5_000, 2_500, 1_250] and max(batch_sizes[2:]) == 1_250


def test_a_failing_gpu_falls_back_to_the_cpu_with_a_warning(vectors, monkeypatch, caplog):
    class Broken(faiss.IndexFlatL2):
        def search(self, some, k):
            raise RuntimeError(FULL)

    faiss_with_gpu(monkeypatch, Broken)
    made = fit_centroids_on_gpu(vectors, 50)
    assert (made.nearest(vectors) == nearest_of(made.centroids, vectors)[1]).mean() > 0.99
    assert [record.levelname for record in caplog.records] == ["WARNING"]

    class Full(faiss.IndexFlatL2):
        def add(self, some):
            raise RuntimeError(FULL)

    faiss_with_gpu(monkeypatch, Full)
    assert fit_centroids_on_gpu(vectors, 50) is None
    assert len(caplog.records) == 2
